import { useMutation, useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useToast } from "@/components/Toast";
import { asApiError } from "./client";

interface Action<Input, Output> {
  /** What is asked of the server. */
  run: (input: Input) => Promise<Output>;
  /** What the toast says when it is done; none where the page shows it anyway. */
  done?: (output: Output, input: Input) => string;
  /** What is asked for again afterwards. */
  refresh?: readonly QueryKey[];
  /** Called when it is done, for what the page does next. */
  then?: (output: Output, input: Input) => void;
  /** Failures are shown by the page itself (a form), not by a toast. */
  quiet?: boolean;
}

/** A change that a button or a form asks for: `mutate` does it, failures are shown with their remedy. */
export function useAct<Input = void, Output = unknown>(action: Action<Input, Output>) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: action.run,
    onSuccess: async (output, input) => {
      if (action.done !== undefined) toast.good(action.done(output, input));
      action.then?.(output, input);
      await Promise.all((action.refresh ?? []).map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError: (error) => {
      const said = asApiError(error);
      if (!action.quiet) toast.bad(said.message, said.remedy);
    },
  });
}
