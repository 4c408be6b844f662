import { expect, test } from "bun:test";
import { parsePing, ping } from "../../../core/host/ping.ts";

test("reads what iputils prints", () => {
  const text = `PING 10.5.2.0 (10.5.2.0) 56(84) bytes of data.
64 bytes from 10.5.2.0: icmp_seq=1 ttl=64 time=0.068 ms
64 bytes from 10.5.2.0: icmp_seq=3 ttl=64 time=12 ms

--- 10.5.2.0 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 402ms
rtt min/avg/max/mdev = 0.068/6.034/12.000/5.966 ms
`;
  expect(parsePing(text)).toEqual({ sent: 3, received: 2, times: [0.068, 12] });
  expect(parsePing("")).toEqual({ sent: 0, received: 0, times: [] });
});

test("loopback answers, also at full size; more than its MTU is no answer", async () => {
  const { sent, received, times } = await ping("127.0.0.1", { count: 2, interval: 0.01 });
  expect({ sent, received, times: times.length }).toEqual({ sent: 2, received: 2, times: 2 });
  expect((await ping("127.0.0.1", { count: 1, payload: 65_507 })).received).toBe(1);
});

test("a local refusal of the size, and silence, are results", async () => {
  const { received } = await ping("127.0.0.1", { count: 1, payload: 65_508, patience: 0.2 }).catch(
    (error) => {
      // Beyond what IPv4 can carry ping itself refuses.
      expect(error.code).toBe("PING_FAILED");
      return { received: 0 };
    },
  );
  expect(received).toBe(0);
});

test("a bad address is a fault that names it", async () => {
  await expect(ping("no.such.host.invalid", { count: 1 })).rejects.toMatchObject({
    code: "PING_FAILED",
    message: expect.stringContaining("no.such.host.invalid"),
  });
});
