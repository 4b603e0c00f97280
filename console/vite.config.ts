import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.HEADGATE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    // Into the Python package: the server has these files, and so has the wheel.
    outDir: "../src/headgate/server/console",
    emptyOutDir: true,
    target: "es2023",
    // A data: URL in a style sheet would be one more thing for the content security policy to allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
  },
  server: {
    proxy: {
      "/api": {
        target: server,
        changeOrigin: true,
        // The server refuses what another origin asks for; here the pages come from the one of `npm run dev`.
        configure: (proxy) => {
          proxy.on("proxyReq", (request) => {
            request.setHeader("origin", server);
          });
        },
      },
    },
  },
  test: {
    environment: "jsdom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    restoreMocks: true,
  },
});
