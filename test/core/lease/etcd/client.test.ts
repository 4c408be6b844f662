import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EtcdClient, type EtcdOptions, openEtcd } from "../../../../core/lease/etcd/client.ts";
import { parseEndpoints } from "../../../../core/lease/etcd/endpoint.ts";
import { Fault } from "../../../../core/observe/fault.ts";
import { CertificateAuthority, type CertificateFiles } from "../../../lab/certificates.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { freePorts } from "../../../lab/ports.ts";
import { TcpProxy } from "../../../lab/proxy.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, RecordingLog, TestNode } from "./node.ts";

const PRELOAD = join(import.meta.dir, "../../../lab/etcd3-preload.ts");
const SECRET = "s3cret-passw0rd";

function open(options: Partial<EtcdOptions> & { endpoints: readonly string[] }): EtcdClient & Disposable {
  const client = openEtcd({ log: new RecordingLog(), ...options });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

/** The fault a call ends with, or "ok". */
async function outcome(client: EtcdClient): Promise<Fault | "ok"> {
  try {
    await client.call("range", { key: Buffer.from(`${PREFIX}/config`) });
    return "ok";
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

describe("endpoints", () => {
  test.each([
    [
      ["http://127.0.0.1:4001", " http://127.0.0.1:2379/ "],
      ["http://127.0.0.1:4001", "http://127.0.0.1:2379"],
    ],
    [["https://Etcd-1.Example:2379"], ["https://etcd-1.example:2379"]],
    [
      ["[fd00::5]:2379", "https://[fd00::5]:2379"],
      ["http://[fd00::5]:2379", "https://[fd00::5]:2379"],
    ],
    [["127.0.0.1:2379", "http://127.0.0.1:2379", ""], ["http://127.0.0.1:2379"]],
  ])("%p is read as %p", (texts, urls) => {
    expect(parseEndpoints(texts).map((endpoint) => endpoint.url)).toEqual(urls);
  });

  test.each([
    ["http://127.0.0.1:2379/v2", "path"],
    ["http://127.0.0.1", "port"],
    ["ftp://127.0.0.1:2379", "scheme ftp"],
    ["http://127.0.0.1:70000", "no host and port"],
    ["http://:2379", "no host and port"],
  ])("%p is refused: %s", (text, reason) => {
    expect(() => parseEndpoints([text])).toThrow(reason);
    expect(() => parseEndpoints([text])).toThrow(expect.objectContaining({ code: "ETCD_ENDPOINT" }));
  });

  test("a password in the URL is not repeated", () => {
    const message = (() => {
      try {
        parseEndpoints([`http://user:${SECRET}@127.0.0.1:2379`]);
        return "";
      } catch (error) {
        return String(error);
      }
    })();
    expect(message).toContain("user in the URL");
    expect(message).not.toContain(SECRET);
  });
});

describe("TLS", () => {
  let ca: CertificateAuthority;
  let client: CertificateFiles;
  let etcd: EtcdServer;
  let serverOnly: EtcdServer;

  beforeAll(async () => {
    ca = new CertificateAuthority();
    client = ca.issue("client");
    const server = ca.issue("server", { names: ["IP:127.0.0.1", "DNS:localhost"] });
    const tls = { ...server, caFile: ca.caFile, client };
    [etcd, serverOnly] = await Promise.all([
      EtcdServer.start({ tls }),
      EtcdServer.start({ tls: { ...tls, requireClient: false } }),
    ]);
  });

  afterAll(async () => {
    await etcd[Symbol.asyncDispose]();
    await serverOnly[Symbol.asyncDispose]();
    ca[Symbol.dispose]();
  });

  test("CA and client certificate, to an IP address and to a name", async () => {
    using byAddress = open({ endpoints: [etcd.endpoint], caFile: ca.caFile, ...client });
    expect(await outcome(byAddress)).toBe("ok");
    using byName = open({
      endpoints: [`https://localhost:${etcd.clientPort}`],
      caFile: ca.caFile,
      ...client,
    });
    expect(await outcome(byName)).toBe("ok");
  });

  test("a CA alone is enough; so is a bundle in which it is the second", async () => {
    using other = new CertificateAuthority("another authority");
    using alone = open({ endpoints: [serverOnly.endpoint], caFile: ca.caFile });
    expect(await outcome(alone)).toBe("ok");
    const bundle = join(ca.folder, "bundle.pem");
    writeFileSync(
      bundle,
      `# two roots\n${await Bun.file(other.caFile).text()}\n${await Bun.file(ca.caFile).text()}`,
    );
    using bundled = open({ endpoints: [serverOnly.endpoint], caFile: bundle });
    expect(await outcome(bundled)).toBe("ok");
  });

  test("the whole store over TLS: config, lease, watch", async () => {
    await using node = await TestNode.open(1, etcd.endpoint, { caFile: ca.caFile, ...client });
    const { lease } = await node.join();
    await node.untilKeys([lease.key]);
    await node.store.release();
  });

  test("what does not verify is ETCD_TLS_VERIFY with the reason", async () => {
    using other = new CertificateAuthority("another authority");
    const cases: [string, EtcdOptions["endpoints"], Partial<EtcdOptions>, RegExp][] = [
      ["no CA given", [serverOnly.endpoint], {}, /not signed by the trusted CA/],
      ["wrong CA", [serverOnly.endpoint], { caFile: other.caFile }, /not signed by the trusted CA/],
      ["no client certificate", [etcd.endpoint], { caFile: ca.caFile }, /refuses our client certificate/],
      [
        "foreign client certificate",
        [etcd.endpoint],
        { caFile: ca.caFile, ...other.issue("x") },
        /refuses our client/,
      ],
    ];
    for (const [name, endpoints, options, reason] of cases) {
      using refused = open({ endpoints, ...options });
      const fault = await outcome(refused);
      expect({ name, fault: fault === "ok" ? fault : `${fault.code} ${fault.message}` }).toEqual({
        name,
        fault: expect.stringMatching(new RegExp(`ETCD_TLS_VERIFY .*${reason.source}`)),
      });
      expect(fault !== "ok" && fault.hint).toContain("--etcd-cafile");
    }
  });

  test("https to a port that speaks http, and the other way round", async () => {
    using secure = open({
      endpoints: [`https://127.0.0.1:${(await plain()).clientPort}`],
      caFile: ca.caFile,
    });
    expect(await outcome(secure)).toMatchObject({
      code: "ETCD_UNREACHABLE",
      message: expect.stringContaining("does it speak https?"),
    });
    using insecure = open({ endpoints: [`http://127.0.0.1:${etcd.clientPort}`] });
    expect(await outcome(insecure)).toMatchObject({ code: "ETCD_UNREACHABLE" });
  });

  test("a server certificate for another address, or an expired one, is refused", async () => {
    const wrong = ca.issue("wrong", { names: ["IP:192.0.2.1"] });
    const expired = ca.issue("expired", { names: ["IP:127.0.0.1"], expired: true });
    for (const [certificate, reason] of [
      [wrong, "for another name or address"],
      [expired, "expired"],
    ] as const) {
      await using server = await startWith(certificate, ca.caFile, client);
      using refused = open({ endpoints: [server.endpoint], caFile: ca.caFile });
      expect(await outcome(refused)).toMatchObject({
        code: "ETCD_TLS_VERIFY",
        message: expect.stringContaining(reason),
      });
    }
  });

  test("an expired client certificate is warned of at start and refused by etcd", async () => {
    const log = new RecordingLog();
    using refused = open({
      endpoints: [etcd.endpoint],
      caFile: ca.caFile,
      ...ca.issue("old", { expired: true }),
      log,
    });
    expect(log.text).toContain("the certificate ended at");
    expect(await outcome(refused)).toMatchObject({ code: "ETCD_TLS_VERIFY" });
  });

  test("files are checked before anything is connected", () => {
    const junk = join(ca.folder, "junk.pem");
    writeFileSync(junk, "not a certificate");
    const other = ca.issue("other");
    const cases: [Partial<EtcdOptions>, RegExp][] = [
      [{ caFile: "/nonexistent/ca.pem" }, /--etcd-cafile \/nonexistent\/ca\.pem/],
      [{ caFile: junk }, /holds no PEM certificate/],
      [{ caFile: ca.folder }, /--etcd-cafile/],
      [{ certFile: client.certFile }, /without --etcd-keyfile/],
      [{ keyFile: client.keyFile }, /without --etcd-certfile/],
      [{ certFile: client.certFile, keyFile: junk }, /no usable PEM private key/],
      [{ certFile: client.certFile, keyFile: other.keyFile }, /does not belong to the certificate/],
    ];
    for (const [options, reason] of cases) {
      const attempt = () => openEtcd({ endpoints: [etcd.endpoint], log: new RecordingLog(), ...options });
      expect(attempt).toThrow(reason);
      expect(attempt).toThrow(expect.objectContaining({ code: "ETCD_TLS_FILE" }));
    }
  });

  test("http stays plain although files are given, with a warning", async () => {
    const log = new RecordingLog();
    using client_ = open({ endpoints: [(await plain()).endpoint], caFile: ca.caFile, ...client, log });
    expect(await outcome(client_)).toBe("ok");
    expect(log.text).toContain("nothing is encrypted");
  });

  test("certificates replaced on disk are used after the first refusal", async () => {
    using other = new CertificateAuthority("another authority");
    const file = join(ca.folder, "rotating.pem");
    writeFileSync(file, await Bun.file(other.caFile).text());
    using rotating = open({ endpoints: [serverOnly.endpoint], caFile: file });
    expect(await outcome(rotating)).toMatchObject({ code: "ETCD_TLS_VERIFY" });
    writeFileSync(file, await Bun.file(ca.caFile).text());
    await until(async () => (await outcome(rotating)) === "ok", { message: "the new CA is not used" });
  });
});

let plainServer: EtcdServer | undefined;
/** A plain etcd shared by the tests that only need one. */
async function plain(): Promise<EtcdServer> {
  plainServer ??= await EtcdServer.start();
  return plainServer;
}
afterAll(async () => {
  await plainServer?.[Symbol.asyncDispose]();
});

/** An etcd with a certificate that etcdctl refuses too, so that only its port can be awaited. */
async function startWith(
  certificate: CertificateFiles,
  caFile: string,
  client: CertificateFiles,
): Promise<EtcdServer> {
  const [clientPort = 0, peerPort = 0] = await freePorts(2);
  const tls = { ...certificate, caFile, client, requireClient: false };
  const server = EtcdServer.prepare({ tls }, clientPort, peerPort, "m0", `m0=http://127.0.0.1:${peerPort}`);
  server.spawn();
  await until(
    async () => {
      const socket = await Bun.connect({ hostname: "127.0.0.1", port: clientPort, socket: { data() {} } });
      socket.end();
      return true;
    },
    { message: () => server.output },
  );
  return server;
}

describe.concurrent("authentication", () => {
  test("wrong password, unknown user, no user, no permission: told apart, the password in no text", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.enableAuth("flannel", SECRET, `${PREFIX}/`);
    const cases: [EtcdOptions["login"], string][] = [
      [{ username: "flannel", password: SECRET }, "ok"],
      [{ username: "flannel", password: `${SECRET}x` }, "ETCD_AUTH"],
      [{ username: "nobody", password: SECRET }, "ETCD_AUTH"],
      [undefined, "ETCD_AUTH"],
    ];
    for (const [login, code] of cases) {
      using client = open({ endpoints: [etcd.endpoint], login });
      const fault = await outcome(client);
      expect(fault === "ok" ? fault : fault.code).toBe(code);
      expect(fault === "ok" ? "" : `${fault.message} ${fault.hint} ${Bun.inspect(fault)}`).not.toContain(
        SECRET,
      );
    }
    using client = open({ endpoints: [etcd.endpoint], login: { username: "flannel", password: SECRET } });
    const denied = client.call("range", { key: Buffer.from("/elsewhere") });
    await expect(denied).rejects.toMatchObject({ code: "ETCD_PERMISSION" });
  });

  test("user and password given, but etcd has authentication off: works with one warning", async () => {
    const log = new RecordingLog();
    using client = open({
      endpoints: [(await plain()).endpoint],
      login: { username: "flannel", password: SECRET },
      log,
    });
    expect(await outcome(client)).toBe("ok");
    expect(await outcome(client)).toBe("ok");
    expect(log.lines.filter((line) => line.level === "warn")).toHaveLength(1);
  });

  test("A10: tokens that live 3 s for 15 s: every change arrives, few logins; etcd restarted; password changed", async () => {
    await using etcd = await EtcdServer.start({ args: ["--auth-token", "simple", "--auth-token-ttl", "3"] });
    await etcd.enableAuth("flannel", SECRET, `${PREFIX}/`);
    await using node = await TestNode.open(1, etcd.endpoint, {
      login: { username: "flannel", password: SECRET },
      ttlMs: 20_000,
      marginMs: 15_000,
    });
    const { lease } = await node.join();
    const keys = [lease.key];
    const start = performance.now();
    for (let n = 0; n < 4; n += 1) {
      // The pace of the changes is what is under test: longer than a token lives.
      await Bun.sleep(3_700);
      const key = `10.5.${230 + n}.0-24`;
      await etcd.ctl("put", `${PREFIX}/subnets/${key}`, `{"PublicIP":"192.0.2.${230 + n}"}`);
      keys.push(key);
      await node.untilKeys(keys, 2_000);
    }
    const seconds = (performance.now() - start) / 1000;
    expect(node.store.stats.requests.authenticate).toBeLessThanOrEqual(seconds / 3 + 2);
    expect(node.state?.state).toBe("held");

    // The restarted member has forgotten all tokens: the watch is refused and must be opened with a new one.
    await etcd.restart();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    keys.push("10.5.240.0-24");
    await node.untilKeys(keys);

    // Another password: nothing works, which is said once, and again once it is over.
    await until(() => node.health.list().length === 0, { message: () => JSON.stringify(node.health.list()) });
    const lines = node.log.lines.length;
    await etcd.password("flannel", "another");
    await etcd.restart();
    await until(() => node.health.has("ETCD_AUTH"), { message: () => node.log.text });
    await until(() => (node.store.stats.requests.authenticate ?? 0) >= 8, {
      message: "no more tries",
      deadline: 15_000,
    });
    expect(node.log.lines.slice(lines).filter((line) => line.level !== "debug").length).toBeLessThanOrEqual(
      6,
    );
    expect(node.log.text).not.toContain(SECRET);
    await etcd.password("flannel", SECRET);
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.241.0-24`, '{"PublicIP":"192.0.2.241"}');
    keys.push("10.5.241.0-24");
    await node.untilKeys(keys, 15_000);
  });
});

describe.concurrent("members that do not answer", () => {
  test("A13: one endpoint is a black hole, one is refused, one lives: a lease within 10 s, whatever comes first", async () => {
    await using etcd = await EtcdServer.start();
    await using hole = await TcpProxy.start(etcd.clientPort);
    hole.blackhole();
    await using closed = await TcpProxy.start(etcd.clientPort);
    closed.refuse();
    // The first member is chosen at random: many nodes try every order.
    await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        await using node = await TestNode.open(n + 1, [hole.endpoint, closed.endpoint, etcd.endpoint]);
        const start = performance.now();
        const { lease } = await node.join();
        await until(() => node.peers.has(lease.key), { message: () => node.log.text });
        expect(performance.now() - start).toBeLessThan(10_000);
        await node.store.release();
      }),
    );
  });

  test("a connection that goes dead is noticed by the watch, and the next member is used", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, [proxy.endpoint], { ttlMs: 60_000, marginMs: 10_000 });
    const { lease } = await node.join();
    await node.untilKeys([lease.key]);
    proxy.blackhole();
    const start = performance.now();
    await until(() => node.health.has("ETCD_UNREACHABLE"), { message: "not noticed", deadline: 15_000 });
    // Keepalive: a ping each 6 s, 3 s for the answer; 1 s for a busy machine.
    expect(performance.now() - start).toBeLessThan(11_000);
    proxy.pass();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    await node.untilKeys([lease.key, "10.5.240.0-24"], 8_000);
  });

  test("after a restart of etcd the watch is back at once", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint);
    const { lease } = await node.join();
    await node.untilKeys([lease.key]);
    await etcd.restart();
    const start = performance.now();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    await node.untilKeys([lease.key, "10.5.240.0-24"]);
    expect(performance.now() - start).toBeLessThan(3_000);
  });
});

describe.concurrent("closing", () => {
  const programFor = (endpoint: string) => `
    import { TestNode } from "${import.meta.dir}/node.ts";
    const node = await TestNode.open(1, "${endpoint}");
    await node.join();
    await node.untilState("held");
    console.log("joined");
    for await (const line of console) {
      const start = performance.now();
      await node.stop();
      await node.store.close();
      console.log("stopped in", performance.now() - start);
      break;
    }
  `;

  test.each(["alive", "frozen", "gone"])(
    "with etcd %s: within 500 ms, and nothing keeps the process",
    async (how) => {
      await using etcd = await EtcdServer.start();
      const child = Bun.spawn([process.execPath, "--preload", PRELOAD, "-e", programFor(etcd.endpoint)], {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "inherit",
        cwd: import.meta.dir,
      });
      const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      try {
        expect((await lines.read()).value).toContain("joined");
        if (how === "frozen") etcd.pause();
        if (how === "gone") await etcd.stop();
        const start = performance.now();
        child.stdin.write("stop\n");
        await child.stdin.flush();
        const answer = (await lines.read()).value ?? "";
        expect(Number(/stopped in (.*)/.exec(answer)?.[1])).toBeLessThan(500);
        child.stdin.end();
        expect(await child.exited).toBe(0);
        expect(performance.now() - start).toBeLessThan(1_000);
      } finally {
        child.kill("SIGKILL");
      }
    },
  );
});
