/**
 * `bun udp-attacker.ts TARGET PORT COUNT INSIDE`: sends COUNT datagrams from PORT to port 8285 of TARGET: noise, packets
 * for INSIDE with a byte or two changed, and ones cut short. Prints what it sent.
 */
const [target = "", port = "", count = "", inside = ""] = process.argv.slice(2);
const BATCH = 500;

/** A TCP segment for `inside`, all of whose fields are then played with. */
function template(): Uint8Array {
  const packet = Buffer.alloc(20 + 20 + 60);
  packet.set([0x45, 0, 0, packet.length, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 244, 201, 9]);
  packet.set(inside.split(".").map(Number), 16);
  packet.set([0x50, 0x10], 32);
  return packet;
}

let state = 0x2545f491;
/** xorshift: the same datagrams in each run. */
function random(below: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}

const whole = template();
const LENGTHS = [0, 1, 19, 20, 21, 27, 28, 39, 40, 41, 60, 100];
const VERSIONS = [0x45, 0x46, 0x4f, 0x60, 0x00, 0x44, 0xff];

function mutant(): Uint8Array {
  const packet = Uint8Array.from(whole.subarray(0, LENGTHS[random(LENGTHS.length)]));
  const kind = random(4);
  if (packet.length === 0) return packet;
  if (kind === 0) for (let at = 0; at < packet.length; at++) packet[at] = random(256);
  if (kind === 1) packet[0] = VERSIONS[random(VERSIONS.length)] ?? 0;
  for (let changes = random(4); changes > 0; changes--) packet[random(packet.length)] = random(256);
  return packet;
}

const socket = await Bun.udpSocket({ hostname: "0.0.0.0", port: Number(port) });
let sent = 0;
while (sent < Number(count)) {
  const batch = Array.from({ length: BATCH }, () => [mutant(), 8285, target] as const).flat();
  const taken = socket.sendMany(batch);
  sent += taken;
  if (taken < BATCH) await Bun.sleep(1);
  // Others want to run on this machine, the attacked among them.
  else if (sent % (BATCH * 20) === 0) await Bun.sleep(1);
}
console.log(JSON.stringify({ sent }));
process.exit(0);
