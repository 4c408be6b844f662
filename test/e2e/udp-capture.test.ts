/**
 * What is on the wire: every datagram is one bare IP packet whose lengths and checksums are right, whoever computed
 * them, and whether it was cut out of a larger one or sent as it came. Captured where the other host receives.
 *
 *   pod ── cni0 ── h1 (offloads), h3 (none) ── ext0 ── switch + etcd ── ext0 (tcpdump) ── h2 ── cni0 ── pod
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { findMistake } from "../backends/udp/packets.ts";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";

const MIB = 1024 * 1024;

test("every packet on the wire is right in itself", async () => {
  const udp = { Type: "udp" };
  await using cluster = await Cluster.create({
    hosts: 3,
    family: "dual",
    config: networkConfig("dual", { ...udp, Offload: "off" }),
  });
  const [h1, h2, h3] = cluster.hosts as [Host, Host, Host];
  await cluster.startDaemon(h3).ready;
  await cluster.configure(networkConfig("dual", udp));
  await Promise.all([cluster.startDaemon(h1).ready, cluster.startDaemon(h2).ready]);
  const [p1, p2, p3] = (await cluster.addPods()) as [Pod, Pod, Pod];
  for (const pod of [p1, p3]) {
    for (const address of p2.addresses) {
      await until(async () => (await ping(pod, address, { count: 1, deadline: 500 })).received === 1, {
        message: () => `${address} is reached`,
      });
    }
  }
  for (const pod of [p1, p3]) {
    for (const address of p2.addresses) {
      const packets = await capture(h2, async () => {
        await tcpTransfer(pod, p2, address, { bytes: 4 * MIB });
        const target = address.includes(":")
          ? `UDP6-SENDTO:[${address}]:9999`
          : `UDP4-SENDTO:${address}:9999`;
        const send = "for n in 1 7 100 1200; do head -c $n /dev/urandom; sleep 0.01; done";
        await pod.namespace.run(["sh", "-c", `(${send}) | socat -u -b 1300 - ${target}`]);
      });
      const shape = (packet: Uint8Array) =>
        `${packet[0]! >>> 4}/${packet[0]! >>> 4 === 4 ? packet[9] : packet[6]}`;
      const version = address.includes(":") ? 6 : 4;
      const judged = packets.filter((packet) => [`${version}/6`, `${version}/17`].includes(shape(packet)));
      expect(new Set(judged.map(shape))).toEqual(new Set([`${version}/6`, `${version}/17`]));
      expect(judged.length).toBeGreaterThan(MIB / 1_452);
      expect(new Set(judged.map(findMistake))).toEqual(new Set([undefined]));
    }
  }
}, 120_000);

/** The packets inside of all datagrams that reach the port of a host while `work` runs. */
async function capture(host: Host, work: () => Promise<void>): Promise<readonly Uint8Array[]> {
  const file = `${host.directory}/capture.pcap`;
  const filter = "udp and dst port 8285 and inbound";
  const child = host.namespace.spawn(
    "tcpdump",
    "-i",
    "ext0",
    "-s0",
    "-U",
    "--immediate-mode",
    "-B",
    "65536",
    "-w",
    file,
    ...filter.split(" "),
  );
  const reader = child.stderr.getReader();
  for (let text = ""; !text.includes("listening on"); ) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`tcpdump: ${text}`);
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  await work();
  // tcpdump may be behind: the datagrams sent last have to be there.
  const hasUdp = () => readPackets(file).some((packet) => packet[packet[0]! >>> 4 === 4 ? 9 : 6] === 17);
  await until(hasUdp, { message: () => "UDP is captured" });
  child.kill("SIGINT");
  await child.exited;
  return readPackets(file);
}

function readPackets(file: string): readonly Uint8Array[] {
  return readFrames(readFileSync(file)).flatMap(splitDatagrams);
}

/** Frames of a pcap file in this machine's byte order. */
function readFrames(file: Buffer): readonly Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 24; at + 16 <= file.length; ) {
    const length = file.readUInt32LE(at + 8);
    // One that is being written.
    if (at + 16 + length > file.length) break;
    frames.push(file.subarray(at + 16, at + 16 + length));
    at += 16 + length;
  }
  return frames;
}

/** Packets inside an Ethernet frame; a virtual wire carries many datagrams of a UDP_SEGMENT send in one frame. */
function splitDatagrams(frame: Buffer): readonly Buffer[] {
  const ip = frame.subarray(14);
  const payload = ip[0]! >>> 4 === 4 ? ip.subarray(28) : ip.subarray(48);
  const packets: Buffer[] = [];
  for (let at = 0; at < payload.length; ) {
    const length =
      payload[at]! >>> 4 === 4 ? payload.readUInt16BE(at + 2) : payload.readUInt16BE(at + 4) + 40;
    packets.push(payload.subarray(at, at + length));
    at += length;
  }
  return packets;
}
