import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EtcdOptions, openEtcd } from "../../../../core/lease/etcd/client.ts";
import { CertificateAuthority, type CertificateFiles } from "../../../lab/certificates.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { freePorts } from "../../../lab/ports.ts";
import { until } from "../../../lab/until.ts";
import { RecordingLog, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { open, outcome } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

describe("TLS", () => {
  let ca: CertificateAuthority;
  let client: CertificateFiles;
  let etcd: EtcdServer;
  let serverOnly: EtcdServer;
  let plain: EtcdServer;

  beforeAll(async () => {
    ca = new CertificateAuthority();
    client = ca.issue("client");
    const server = ca.issue("server", { names: ["IP:127.0.0.1", "DNS:localhost"] });
    const tls = { ...server, caFile: ca.caFile, client };
    [etcd, serverOnly, plain] = await Promise.all([
      EtcdServer.start({ tls }),
      EtcdServer.start({ tls: { ...tls, requireClient: false } }),
      EtcdServer.start(),
    ]);
  });

  afterAll(async () => {
    await etcd[Symbol.asyncDispose]();
    await serverOnly[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
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
      endpoints: [`https://127.0.0.1:${plain.clientPort}`],
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
    using plaintext = open({ endpoints: [plain.endpoint], caFile: ca.caFile, ...client, log });
    expect(await outcome(plaintext)).toBe("ok");
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
