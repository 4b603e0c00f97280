import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = process.env.HEADGATE_URL ?? "http://127.0.0.1:8080";

/** What a browser loads before it shows anything, compressed as the server does it. */
const LARGEST_FIRST_LOAD = 1_000_000;
/** The pages that come with it where nothing else is asked for: the overview, with its charts. */
const FIRST_PAGES = /\/(Overview|EChart)\.tsx$/;

/** Ends the build where the first load has become too large, and says how large it is. */
function firstLoad(): Plugin {
  return {
    name: "first-load",
    generateBundle(_, bundle) {
      const needed = new Set<string>();
      const need = (name: string): void => {
        const chunk = bundle[name];
        if (needed.has(name) || chunk === undefined) return;
        needed.add(name);
        if (chunk.type !== "chunk") return;
        for (const one of [...chunk.imports, ...(chunk.viteMetadata?.importedCss ?? [])]) need(one);
      };
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        if (chunk.isEntry || FIRST_PAGES.test(chunk.facadeModuleId ?? "")) need(chunk.fileName);
      }
      const bytes = [...needed].reduce((sum, name) => {
        const one = bundle[name];
        return one === undefined ? sum : sum + gzipSync(one.type === "chunk" ? one.code : one.source, { level: 9 }).length;
      }, 0);
      if (bytes > LARGEST_FIRST_LOAD) this.error(`The first load is ${bytes} bytes compressed, of ${LARGEST_FIRST_LOAD} at most.`);
      this.info(`first load: ${bytes} bytes compressed, in ${needed.size} files`);
    },
  };
}

export default defineConfig({
  plugins: [react(), firstLoad()],
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
