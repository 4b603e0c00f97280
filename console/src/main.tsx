import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { SESSION } from "./api/session";
import { ToastProvider } from "./components/Toast";
import { followTheme } from "./lib/theme";
import { router } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/shell.css";

followTheme();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      // A refusal stays one; what may pass is tried again.
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

// Whatever says that nobody is signed in has the shell ask who is.
client.getQueryCache().subscribe((event) => {
  if (event.type !== "updated" || event.action.type !== "error") return;
  const error: unknown = event.action.error;
  if (error instanceof ApiError && error.status === 401) void client.invalidateQueries({ queryKey: SESSION });
});

const place = document.getElementById("root");
if (place === null) throw new Error("The page has no place for the console.");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <ToastProvider>
        <RouterProvider router={router} />
      </ToastProvider>
    </QueryClientProvider>
  </StrictMode>,
);
