import { PREFIX } from "../../lab/cluster.ts";
import { CommandRecorder, isWrite } from "../command-recorder.ts";
import { CONFIG } from "../leases.ts";
import type { Scenario, Session, Subject } from "../scenario.ts";
import { Testbed } from "../testbed.ts";

const WINDOW_MS = 60_000;
const QUICK_WINDOW_MS = 10_000;
/** From READY until everything that the start brings is over, ms: one look at the rules after they were written. */
const SETTLE_MS = 8_000;

/** The places that rules can be in, and what makes a host have them there. */
const KINDS = [
  { id: "nftables", nftables: true, prepare: [] },
  { id: "iptables-nft", nftables: false, prepare: ["iptables-nft", "-t", "nat", "-N", "KUBE-POSTROUTING"] },
  {
    id: "iptables-legacy",
    nftables: false,
    prepare: ["iptables-legacy", "-t", "nat", "-N", "KUBE-POSTROUTING"],
  },
] as const;
type Kind = (typeof KINDS)[number];

/** What looking after the traffic rules costs while nobody changes anything. */
export const rules: Scenario = {
  name: "rules",
  title: "traffic rules in an idle minute",
  figures: () =>
    KINDS.flatMap(({ id }) => [
      {
        id: `processes-${id}`,
        label: `${id}: processes started`,
        unit: "per minute" as const,
        ...(id === "iptables-legacy" ? {} : { atMost: 0 }),
      },
      { id: `writes-${id}`, label: `${id}: of them writing`, unit: "per minute" as const, atMost: 0 },
    ]),
  async measure(session) {
    session.note(`Masquerade and forward rules, IPv4, over ${windowOf(session) / 1000} s. One run.`);
    for (const subject of session.subjects) {
      session.progress(`idle for ${windowOf(session) / 1000} s, ${subject.ours ? "ours" : "other"}`);
      await Promise.all(KINDS.map((kind) => measureKind(session, subject, kind)));
    }
  },
};

function windowOf({ quick }: Session): number {
  return quick ? QUICK_WINDOW_MS : WINDOW_MS;
}

async function measureKind(session: Session, subject: Subject, kind: Kind): Promise<void> {
  await using testbed = await Testbed.create(0);
  await testbed.etcd.ctl(
    "put",
    `${PREFIX}/config`,
    JSON.stringify({ ...CONFIG, EnableNFTables: kind.nftables }),
  );
  await using host = await testbed.addHost();
  // Every host its own lock: the usual one is the whole machine's.
  const env = { XTABLES_LOCKFILE: `${host.host.directory}/xtables.lock` };
  if (kind.prepare.length > 0) {
    await host.host.namespace.exec(
      "env",
      ...Object.entries(env).map((pair) => pair.join("=")),
      ...kind.prepare,
    );
  }
  const recorder = new CommandRecorder(host.host.directory);
  const { daemon } = host.start(subject, {
    flags: ["--ip-masq"],
    env: { ...env, PATH: recorder.path },
  });
  await daemon.ready;
  await Bun.sleep(SETTLE_MS);
  const before = recorder.lines().length;
  const window = windowOf(session);
  await Bun.sleep(window);
  const lines = recorder.lines().slice(before);
  const perMinute = 60_000 / window;
  session.record(`processes-${kind.id}`, subject, lines.length * perMinute);
  session.record(`writes-${kind.id}`, subject, lines.filter(isWrite).length * perMinute);
}
