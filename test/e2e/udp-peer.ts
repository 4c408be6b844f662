/**
 * `bun udp-peer.ts ADDRESS`: a node that speaks upstream's wire format with nothing but a plain UDP socket on port 8285.
 * It answers echo requests, whoever they are for: each datagram is one bare IPv4 packet, without any header of ours.
 */
const ICMP = 1;
const ECHO_REQUEST = 8;

/** Turns an echo request around; undefined for anything else. Checksums do not change when addresses change places. */
function answer(packet: Buffer): Buffer | undefined {
  const header = (packet.readUInt8(0) & 15) << 2;
  if (packet.readUInt8(0) >>> 4 !== 4 || packet.readUInt16BE(2) !== packet.length) return undefined;
  if (sum(packet.subarray(0, header)) !== 0xffff) return undefined;
  if (packet.readUInt8(9) !== ICMP || packet.readUInt8(header) !== ECHO_REQUEST) return undefined;
  const reply = Buffer.from(packet);
  packet.copy(reply, 12, 16, 20);
  packet.copy(reply, 16, 12, 16);
  reply.writeUInt8(0, header);
  reply.writeUInt16BE(0, header + 2);
  reply.writeUInt16BE(~sum(reply.subarray(header)) & 0xffff, header + 2);
  return reply;
}

/** Ones' complement sum of big-endian words. */
function sum(bytes: Buffer): number {
  let total = 0;
  for (let at = 0; at < bytes.length; at += 2) total += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
  return total;
}

await Bun.udpSocket({
  hostname: process.argv[2] ?? "0.0.0.0",
  port: 8285,
  socket: {
    data(socket, packet, port, address) {
      const reply = answer(Buffer.from(packet));
      if (reply) socket.send(reply, port, address);
    },
  },
});
