import { dirname, join } from "node:path";
import protobuf from "protobufjs";
import { SERVICE_OF, STREAM_SERVICE_OF } from "../../core/lease/etcd/rpc.ts";
import { applyPatches, type Patch } from "./patch.ts";

/** Where etcd3's own files lie, as in the bundler's inputs. */
export const ETCD3_FOLDER = "/etcd3/lib/";

/**
 * Makes etcd3 work inside the executable, and start quickly: embeds its protocol description and lets TLS to an IP
 * address verify. For {@link patchPlugin}; runs from source take {@link patchSource} (test/lab/etcd3-preload.ts).
 */
export const ETCD3_PATCHES: readonly Patch[] = [
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
    // Numbers of 64 bits become text (as etcd3 asks for) in a loop of emulated divisions: a good part of the time that
    // a list of leases takes, which has four of them per key.
    filter: /\/long\/umd\/index\.js$/,
    edits: [
      {
        find: 'if (this.isZero()) return "0";',
        replace: () => `var top = this.unsigned ? this.high >>> 0 : this.high;
      var plain = top * 4294967296 + (this.low >>> 0);
      if (Number.isSafeInteger(plain)) return plain.toString(radix);
      return ((BigInt(top) << 32n) + BigInt(this.low >>> 0)).toString(radix);`,
      },
    ],
  },
  {
    // Nearly all of them are small, and need no object to begin with.
    filter: /\/protobufjs\/src\/util\/longbits\.js$/,
    edits: [
      {
        find: "LongBits.prototype.toLong = function toLong(unsigned) {",
        replace: () => `LongBits.prototype.toLong = function toLong(unsigned) {
    if (this.hi >>> 0 < 2 ** 21) return (this.hi >>> 0) * 4294967296 + (this.lo >>> 0);`,
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
    // Local time, which a later moment does not need, makes the runtime load its time zones: 17 ms of every start.
    filter: /\/@grpc\/grpc-js\/build\/src\/backoff-timeout\.js$/,
    edits: [
      {
        find: "this.endTime.setMilliseconds(this.endTime.getMilliseconds() + delay);",
        replace: () => "this.endTime.setTime(this.endTime.getTime() + delay);",
      },
      {
        find: "newEndTime.setMilliseconds(newEndTime.getMilliseconds() + this.nextDelay);",
        replace: () => "newEndTime.setTime(newEndTime.getTime() + this.nextDelay);",
      },
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
 * The repaired text of one source file of etcd3 or what it needs; unchanged where nothing is to be repaired.
 * @throws BuildError when the file no longer has the text that is replaced.
 */
export function patchSource(path: string): string {
  return applyPatches(path, ETCD3_PATCHES);
}

/** Service of every call in use, by the call's name in lower camel case. */
const CALLS: ReadonlyMap<string, string> = new Map(Object.entries({ ...SERVICE_OF, ...STREAM_SERVICE_OF }));

/**
 * rpc.proto and what it imports, as the JSON that `fromJSON` of @grpc/proto-loader reads: the calls in use and the
 * messages they need. Every other message (two thirds) would be resolved at each start for nothing.
 */
function readProto(folder: string): string {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (target.startsWith("/") ? target : join(folder, target));
  root.loadSync("rpc.proto", { keepCase: true }).resolveAll();
  const etcdserverpb = root.lookup("etcdserverpb") as protobuf.Namespace;
  const needed = new Set<protobuf.ReflectionObject>();
  for (const service of etcdserverpb.nestedArray.filter((each) => each instanceof protobuf.Service)) {
    for (const method of service.methodsArray) {
      if (CALLS.get(lowerFirst(method.name)) !== service.name) {
        service.remove(method);
        continue;
      }
      for (const type of [method.resolvedRequestType, method.resolvedResponseType])
        if (type) need(type, needed);
    }
    if (service.methodsArray.length === 0) etcdserverpb.remove(service);
  }
  prune(root, needed);
  return JSON.stringify(root.toJSON());
}

/** Adds a type, the one it is declared in, and the types of its fields. */
function need(type: protobuf.Type | protobuf.Enum, needed: Set<protobuf.ReflectionObject>): void {
  if (needed.has(type)) return;
  needed.add(type);
  if (type.parent instanceof protobuf.Type) need(type.parent, needed);
  if (!(type instanceof protobuf.Type)) return;
  for (const { resolvedType } of type.fieldsArray) if (resolvedType) need(resolvedType, needed);
}

/** Removes all types that are not needed, and packages that are empty then. */
function prune(namespace: protobuf.NamespaceBase, needed: ReadonlySet<protobuf.ReflectionObject>): void {
  for (const child of [...namespace.nestedArray]) {
    if (child instanceof protobuf.Service) continue;
    const isType = child instanceof protobuf.Type;
    if (isType || child instanceof protobuf.Namespace) prune(child, needed);
    const isPackage = !isType && child instanceof protobuf.Namespace;
    if (isPackage ? child.nestedArray.length === 0 : !needed.has(child)) namespace.remove(child);
  }
}

function lowerFirst(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}
