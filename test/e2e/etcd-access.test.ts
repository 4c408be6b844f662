/**
 * The way to etcd: TLS, users and passwords, members that do not answer. What an operator may yet put right at etcd's
 * side is waited for, in one line of the log.
 *
 *   h1 ── ext0 ── switch + etcd (TLS, or users)
 */
import { describe, expect, test } from "bun:test";
import { cpSync, readFileSync } from "node:fs";
import { CertificateAuthority, type CertificateFiles } from "../lab/certificates.ts";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { EtcdServer } from "../lab/etcd.ts";
import { Host } from "../lab/host.ts";
import { Switch } from "../lab/switch.ts";
import { endpointFor, startEtcdOn } from "../lab/switch-etcd.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";

const TIMEOUT = 60_000;
/** Must not show up in anything that is written. */
const PASSWORD = "s3cr3t-Hunter2";

const errors = (daemon: Daemon) => daemon.lines.filter(({ level }) => level === "error");
const waitForError = (daemon: Daemon) => daemon.waitForLog(({ level }) => level === "error");

/** The wait ends at once, without a failure. */
async function expectQuickStop(daemon: Daemon): Promise<void> {
  const end = await daemon.stop();
  expect(end.code).toBe(0);
  expect(end.milliseconds).toBeLessThan(2_000);
}

test(
  "TLS: an address as endpoint, a client certificate, and what happens without",
  async () => {
    using authority = new CertificateAuthority();
    using stranger = new CertificateAuthority("stranger");
    await using on = await Switch.create({ family: "dual" });
    await using host = await Host.create(on, 1);
    const tls = {
      ...authority.issue("etcd", { names: [`IP:${on.ipv4}`, `IP:${on.ipv6}`] }),
      caFile: authority.caFile,
      client: authority.issue("client"),
    };
    await using etcd = await startEtcdOn(on, { tls });
    await etcd.ctl("put", `${PREFIX}/config`, JSON.stringify(networkConfig("v4")));
    const certificate = [`--etcd-certfile=${tls.client.certFile}`, `--etcd-keyfile=${tls.client.keyFile}`];

    for (const endpoint of [endpointFor(host, on, "https"), `https://[${on.ipv6}]:2379`]) {
      await using daemon = Daemon.start(host, {
        endpoints: endpoint,
        flags: [`--etcd-cafile=${authority.caFile}`, ...certificate],
      });
      await daemon.ready;
      expect(errors(daemon)).toEqual([]);
      expect(await daemon.stop()).toMatchObject({ code: 0 });
    }

    await using running = Daemon.start(host, {
      endpoints: endpointFor(host, on, "https"),
      flags: [`--etcd-cafile=${authority.caFile}`, ...certificate],
    });
    await running.ready;
    const names = [`IP:${on.ipv4}`, `IP:${on.ipv6}`];
    await exchange(tls, stranger.issue("etcd", { names }), etcd);
    expect((await untilReason(host, "ETCD_TLS_VERIFY")).text).toContain("not signed by the trusted CA");
    await exchange(tls, authority.issue("etcd", { names }), etcd);
    await untilNoReason(host);
    expect(await running.stop()).toMatchObject({ code: 0 });

    const wrong: readonly (readonly [
      scheme: string,
      flags: readonly string[],
      code: string,
      words: RegExp,
    ])[] = [
      [
        "https",
        [`--etcd-cafile=${stranger.caFile}`, ...certificate],
        "ETCD_TLS_VERIFY",
        /not signed by the trusted CA/,
      ],
      ["https", certificate, "ETCD_TLS_VERIFY", /not signed by the trusted CA/],
      ["https", [`--etcd-cafile=${authority.caFile}`], "ETCD_TLS_VERIFY", /client certificate/],
      ["http", [], "ETCD_UNREACHABLE", /192\.0\.2\.100/],
    ];
    for (const [scheme, flags, code, words] of wrong) {
      await using daemon = Daemon.start(host, { endpoints: endpointFor(host, on, scheme), flags });
      const line = await waitForError(daemon);
      expect(line).toMatchObject({
        code,
        msg: expect.stringMatching(words),
        fix: expect.stringMatching(/check/),
      });
      await expectQuickStop(daemon);
      expect(errors(daemon)).toHaveLength(1);
    }
  },
  TIMEOUT,
);

describe("users", () => {
  test(
    "a wrong password is told once and mended at etcd's side; no secret is ever written",
    async () => {
      await using cluster = await Cluster.create({ hosts: 1 });
      const [host] = cluster.hosts as [Host];
      await cluster.etcd.enableAuth("flannel", "another one", `${PREFIX}/`);
      const daemon = cluster.startDaemon(host, {
        flags: ["--etcd-username=flannel", "--v=2"],
        env: { FLANNELD_ETCD_PASSWORD: PASSWORD },
      });
      expect(await waitForError(daemon)).toMatchObject({
        code: "ETCD_AUTH",
        fix: expect.stringContaining("--etcd-password"),
      });
      await Bun.sleep(1_500);
      expect(errors(daemon)).toHaveLength(1);
      await changePassword(cluster, "flannel", PASSWORD);
      await daemon.ready;
      expect(daemon.lines.some(({ msg }) => msg.startsWith("over: etcd cannot be used"))).toBe(true);
      await daemon.stop();
      expect(readFileSync(daemon.logPath, "utf8")).not.toContain(PASSWORD);
    },
    TIMEOUT,
  );

  test(
    "without user, with an unknown one, and without permission",
    async () => {
      await using cluster = await Cluster.create({ hosts: 1 });
      const [host] = cluster.hosts as [Host];
      await cluster.etcd.enableAuth("flannel", PASSWORD, "/elsewhere/");
      const env = { FLANNELD_ETCD_PASSWORD: PASSWORD };
      for (const [flags, code] of [
        [[], "ETCD_AUTH"],
        [["--etcd-username=nobody"], "ETCD_AUTH"],
        [["--etcd-username=flannel"], "ETCD_PERMISSION"],
      ] as const) {
        const daemon = cluster.startDaemon(host, { flags, env });
        expect(await waitForError(daemon)).toMatchObject({ code });
        await expectQuickStop(daemon);
        expect(errors(daemon)).toHaveLength(1);
        expect(readFileSync(daemon.logPath, "utf8")).not.toContain(PASSWORD);
      }
    },
    TIMEOUT,
  );
});

test(
  "a member that nobody hears of does not keep the daemon from its start",
  async () => {
    await using cluster = await Cluster.create({ hosts: 1 });
    const [host] = cluster.hosts as [Host];
    const endpoints = `http://192.0.2.250:2379,${endpointFor(host)}`;
    const daemon = cluster.startDaemon(host, { endpoints });
    expect(await daemon.ready).toBeLessThan(10_000);
    expect(errors(daemon)).toEqual([]);
    await daemon.stop();
  },
  TIMEOUT,
);

/** etcd starts again with another certificate in the place of its own. */
async function exchange(server: CertificateFiles, by: CertificateFiles, etcd: EtcdServer): Promise<void> {
  await etcd.stop();
  cpSync(by.certFile, server.certFile);
  cpSync(by.keyFile, server.keyFile);
  etcd.spawn();
}

/** `etcdctl user passwd` reads the new password from its standard input only. */
async function changePassword({ etcd, switch: on }: Cluster, user: string, password: string): Promise<void> {
  const command = ["etcdctl", "--endpoints", etcd.endpoint, "--user", "root:root", "user", "passwd", user];
  const ran = await on.namespace.run([...command, "--interactive=false"], { input: `${password}\n` });
  if (ran.exitCode !== 0) throw new Error(ran.stderr);
}
