import { expect, test } from "bun:test";
import { listUdpPorts, parseUdpPorts } from "../../../core/host/udp-ports.ts";

test("reads /proc/net/udp", () => {
  const text = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  603: 00000000:2118 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1189440 2 000000008ba16f2e 0
  604: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 0:0 0:0 0 0 0 1 2 0 0
`;
  expect(parseUdpPorts(text)).toEqual([8472, 53]);
  expect(parseUdpPorts("")).toEqual([]);
});

test("finds a socket of ours", async () => {
  const socket = await Bun.udpSocket({ hostname: "127.0.0.1", port: 0 });
  expect(listUdpPorts()).toContain(socket.port);
  socket.close();
});
