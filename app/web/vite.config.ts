import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Relative addresses, so that the page works under whatever path a proxy gives it. Nothing is inlined: the page's
// policy allows no inline script or style.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    target: "es2023",
    license: { fileName: "licences/libraries.md" },
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8000" } },
});
