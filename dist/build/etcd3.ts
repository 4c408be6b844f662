import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BunPlugin } from "bun";
import protobuf from "protobufjs";
import { BuildError } from "./error.ts";

/** One source file of a dependency that does not work (or costs too much) as it is, and what becomes of its text. */
interface Patch {
  readonly filter: RegExp;
  readonly edits: readonly Edit[];
}

interface Edit {
  readonly find: string;
  replace(file: string): string;
}

const PATCHES: readonly Patch[] = [
  {
    // etcd3 reads rpc.proto from its package folder when it is imported: there is no such folder in the executable.
    filter: /\/etcd3\/lib\/connection-pool\.js$/,
    edits: [
      {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the dependency
        find: "(0, proto_loader_1.loadSync)(`${__dirname}/../proto/rpc.proto`, ",
        replace: (file) => `(0, proto_loader_1.fromJSON)(${readProto(join(dirname(file), "../proto"))}, `,
      },
    ],
  },
  {
    // The loader describes every message a second time, for gRPC's reflection service, which a client never offers:
    // half of the CPU time of importing etcd3.
    filter: /\/@grpc\/proto-loader\/build\/src\/index\.js$/,
    edits: [
      { find: 'require("protobufjs/ext/descriptor")', replace: () => "{}" },
      { find: "const descriptorList = root.toDescriptor('proto3').file;", replace: () => "" },
      {
        find: "descriptorList.map(value => Buffer.from(descriptor.FileDescriptorProto.encode(value).finish()))",
        replace: () => "[]",
      },
      { find: "const messageDescriptor = message.toDescriptor('proto3');", replace: () => "" },
      { find: "messageDescriptor.$type.toObject(messageDescriptor, descriptorOptions)", replace: () => "{}" },
      { find: "const enumDescriptor = enumType.toDescriptor('proto3');", replace: () => "" },
      { find: "enumDescriptor.$type.toObject(enumDescriptor, descriptorOptions)", replace: () => "{}" },
    ],
  },
  {
    // grpc-js asks for an IP address as TLS server name, which RFC 6066 §3 forbids and Bun refuses. Without server
    // name the peer is verified against its IP subject alternative name.
    filter: /\/@grpc\/grpc-js\/build\/src\/channel-credentials\.js$/,
    edits: [
      {
        find: "connectionOptions.servername = remoteHost;",
        replace: () => `if (require("node:net").isIP(remoteHost) === 0) {
      connectionOptions.servername = remoteHost;
    } else {
      const verifyIdentity = connectionOptions.checkServerIdentity ?? tls_1.checkServerIdentity;
      connectionOptions.checkServerIdentity = (_host, certificate) => verifyIdentity(remoteHost, certificate);
    }`,
      },
    ],
  },
];

/**
 * Makes etcd3 work inside the executable: embeds its protocol description and lets TLS to an IP address verify.
 * For `Bun.build`; runs from source take {@link patchSource} (test/lab/etcd3-preload.ts).
 * @throws BuildError (at build) when a dependency no longer has the text that is replaced.
 */
export function etcd3Plugin(): BunPlugin {
  return {
    name: "etcd3",
    setup(build) {
      for (const { filter } of PATCHES) {
        build.onLoad({ filter }, ({ path }) => ({ contents: patchSource(path), loader: "js" }));
      }
    },
  };
}

/**
 * The repaired text of one source file of etcd3 or grpc-js; unchanged where nothing is to be repaired.
 * @throws BuildError when the file no longer has the text that is replaced.
 */
export function patchSource(path: string): string {
  const source = readFileSync(path, "utf8");
  let text = source;
  for (const { find, replace } of PATCHES.find(({ filter }) => filter.test(path))?.edits ?? []) {
    if (!text.includes(find)) {
      throw new BuildError(`${path}: expected the text ${JSON.stringify(find)}; check dist/build/etcd3.ts`);
    }
    text = text.replace(find, () => replace(path));
  }
  return text;
}

/**
 * Makes sure that a bundle which holds etcd3 holds the files that were to be patched: a renamed one would slip by.
 * @throws BuildError naming the file.
 */
export function checkEtcd3Patched(inputs: readonly string[]): void {
  if (!inputs.some((input) => input.includes("/etcd3/lib/"))) return;
  for (const { filter } of PATCHES) {
    if (inputs.some((input) => filter.test(input))) continue;
    throw new BuildError(`etcd3 is bundled without a file that matches ${filter}; check dist/build/etcd3.ts`);
  }
}

/** rpc.proto and what it imports, as the JSON that `fromJSON` of @grpc/proto-loader reads. */
function readProto(folder: string): string {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (target.startsWith("/") ? target : join(folder, target));
  root.loadSync("rpc.proto", { keepCase: true });
  return JSON.stringify(root.toJSON());
}
