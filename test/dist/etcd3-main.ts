/** A program that imports etcd3 the way core does, lazily, and tells its own version. */
declare const BUILD_VERSION: string;
const { Etcd3 } = await import("etcd3");
console.log(JSON.stringify({ version: BUILD_VERSION, etcd3: typeof Etcd3 }));
process.exit(0);
