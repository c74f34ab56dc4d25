import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { Problem } from "./api/http";
import { watchInvitations } from "./session/invited";
import { watchAddress } from "./session/offered";
import { applyTheme } from "./ui/theme";
import "./theme.css";
import "./layout.css";

/** A session that is over leads to signing in, whatever found it out. */
function look(error: unknown): void {
  if (error instanceof Problem && error.status === 401) queries.setQueryData(["session"], null);
}

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: look }),
  mutationCache: new MutationCache({ onError: look }),
  defaultOptions: {
    queries: {
      // What the server refused it refuses again; what did not reach it is worth another try.
      retry: (failures, error) => failures < 2 && error instanceof Problem && [0, 502, 503, 504].includes(error.status),
      refetchOnWindowFocus: false,
      staleTime: 10_000,
    },
  },
});

applyTheme();
watchAddress();
watchInvitations();

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has a root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
