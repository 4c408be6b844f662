import { createRequire } from "node:module";
import { dirname } from "node:path";
import { patchSource } from "../../dist/build/etcd3.ts";

/**
 * Gives runs from source the one repair of grpc-js they need: TLS to an IP address (the build embeds it, see
 * dist/build/etcd3.ts). Bun takes text from a run-time plugin for an ES module, which loses the exports of a CommonJS
 * file; so the file is evaluated here and handed over as an object.
 */
Bun.plugin({
  name: "etcd3-source",
  setup(build) {
    build.onLoad({ filter: /\/@grpc\/grpc-js\/build\/src\/channel-credentials\.js$/ }, ({ path }) => {
      const module = { exports: {} };
      const evaluate = new Function(
        "module",
        "exports",
        "require",
        "__filename",
        "__dirname",
        patchSource(path),
      );
      evaluate(module, module.exports, createRequire(path), path, dirname(path));
      return { exports: module.exports, loader: "object" };
    });
  },
});
