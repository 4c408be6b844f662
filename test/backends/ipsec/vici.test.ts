import { describe, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { ViciClient, ViciError } from "../../../backends/ipsec/vici/client.ts";
import {
  decodePacket,
  encodePacket,
  LENGTH_BYTES,
  PACKET,
  type Packet,
  ViciFormatError,
} from "../../../backends/ipsec/vici/codec.ts";
import { Frames } from "../../../backends/ipsec/vici/frames.ts";
import type { ViciMessage } from "../../../backends/ipsec/vici/message.ts";
import { TemporaryFolder } from "../../core/host/temporary-folder.ts";
import { refusalOf } from "../../core/lease/etcd/probe.ts";

const name = fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" });
const text = fc.string({ maxLength: 300, unit: "grapheme" });
const { message } = fc.letrec<{ message: ViciMessage }>((tie) => ({
  message: fc.dictionary(name, fc.oneof({ depthSize: "small" }, text, fc.array(text), tie("message")), {
    noNullPrototype: true,
  }),
}));
const packet: fc.Arbitrary<Packet> = fc.oneof(
  fc.record({ type: fc.constantFrom(PACKET.request, PACKET.register, PACKET.event), name, message }),
  fc.record({ type: fc.constantFrom(PACKET.response, PACKET.confirm, PACKET.unknownCommand), message }),
);

describe("the codec", () => {
  test("reads what it wrote, whatever that is", () => {
    fc.assert(
      fc.property(packet, (each) => {
        expect(decodePacket(encodePacket(each).subarray(LENGTH_BYTES))).toEqual(each);
      }),
    );
  });

  test("writes the bytes of the documented example", () => {
    // src/libcharon/plugins/vici/README.md: key1 = value1, section1 = { sub-section = { key2 = value2 }, list1 = [ item1, item2 ] }
    const example = {
      key1: "value1",
      section1: { "sub-section": { key2: "value2" }, list1: ["item1", "item2"] },
    };
    const bytes = [
      ...[3, 4, ..."key1", 0, 6, ..."value1"],
      ...[1, 8, ..."section1", 1, 11, ..."sub-section", 3, 4, ..."key2", 0, 6, ..."value2", 2],
      ...[4, 5, ..."list1", 5, 0, 5, ..."item1", 5, 0, 5, ..."item2", 6, 2],
    ].map((each) => (typeof each === "string" ? each.charCodeAt(0) : each));
    const encoded = encodePacket({ type: PACKET.response, message: example });
    expect([...encoded]).toEqual([0, 0, 0, bytes.length + 1, PACKET.response, ...bytes]);
  });

  test("refuses any other bytes, and nothing worse happens", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodePacket(bytes);
        } catch (error) {
          if (!(error instanceof ViciFormatError)) throw error;
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test("refuses what was cut off or altered somewhere", () => {
    fc.assert(
      fc.property(packet, fc.nat(), fc.nat(255), (each, where, value) => {
        const bytes = encodePacket(each).slice(LENGTH_BYTES);
        bytes[where % bytes.length] = value;
        try {
          decodePacket(bytes.subarray(0, 1 + (where % bytes.length)));
          decodePacket(bytes);
        } catch (error) {
          if (!(error instanceof ViciFormatError)) throw error;
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test("refuses sections nested without end, and names and values that are too long", () => {
    const start = [1, 1, 97];
    expect(() => decodePacket(Uint8Array.from([1, ...Array(10_000).fill(start).flat()]))).toThrow(/deep/);
    for (const bad of [{ "": "x" }, { ["n".repeat(256)]: "x" }, { n: "x".repeat(65_536) }]) {
      expect(() => encodePacket({ type: PACKET.response, message: bad })).toThrow(ViciFormatError);
    }
    expect(() =>
      encodePacket({ type: PACKET.response, message: { a: "secret".repeat(20_000) } }),
    ).not.toThrow(/secret/);
  });

  test("packets are cut out of a stream however it is chopped", () => {
    fc.assert(
      fc.property(
        fc.array(packet, { maxLength: 5 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
        (packets, sizes) => {
          const stream = Buffer.concat(packets.map((each) => encodePacket(each)));
          const frames = new Frames();
          const read: Packet[] = [];
          for (let at = 0; at < stream.length; ) {
            const size = sizes.next().value ?? 1;
            for (const frame of frames.push(stream.subarray(at, at + size))) read.push(decodePacket(frame));
            at += size;
          }
          expect(read).toEqual(packets);
        },
      ),
    );
    expect(() => new Frames().push(Uint8Array.of(0xff, 0, 0, 0))).toThrow(ViciFormatError);
  });
});

/** A charon of the test: answers each packet as told. */
class FakeCharon implements AsyncDisposable {
  readonly folder = new TemporaryFolder();
  readonly path = this.folder.file("charon.vici");
  readonly heard: Packet[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(answer: (packet: Packet, send: (...packets: Packet[]) => void, socket: Socket) => void) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      const frames = new Frames();
      socket.on("error", () => {});
      socket.on("data", (bytes: Uint8Array) => {
        for (const frame of frames.push(bytes)) {
          const packet = decodePacket(frame);
          this.heard.push(packet);
          const send = (...packets: Packet[]) => {
            for (const each of packets) socket.write(encodePacket(each));
          };
          answer(packet, send, socket);
        }
      });
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.path, resolve));
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    this.folder[Symbol.dispose]();
  }
}

const charon = (answer: ConstructorParameters<typeof FakeCharon>[0]) => new FakeCharon(answer).listen();
const messageOf = async (promise: Promise<unknown>) => {
  const error = await refusalOf(promise);
  expect(error).toBeInstanceOf(ViciError);
  return (error as Error).message;
};

describe("the client", () => {
  test("asks one thing after the other", async () => {
    await using server = await charon(({ name: command = "" }, send) => {
      setTimeout(() => send({ type: PACKET.response, message: { success: "yes", command } }), 5);
    });
    const client = await ViciClient.open(server.path);
    const answers = await Promise.all([
      client.request("version"),
      client.request("load-conn", { a: { b: "c" } }),
    ]);
    expect(answers).toEqual([
      { success: "yes", command: "version" },
      { success: "yes", command: "load-conn" },
    ]);
    expect(server.heard[1]).toEqual({ type: PACKET.request, name: "load-conn", message: { a: { b: "c" } } });
    client.close();
  });

  test("collects the events of a list, and lets go of them", async () => {
    await using server = await charon(({ type }, send) => {
      if (type !== PACKET.request) return send({ type: PACKET.confirm, message: {} });
      send(
        { type: PACKET.event, name: "list-sa", message: { one: { uniqueid: "1" } } },
        { type: PACKET.event, name: "list-sa", message: { two: { uniqueid: "2" } } },
        { type: PACKET.response, message: {} },
      );
    });
    const client = await ViciClient.open(server.path);
    expect(await client.list("list-sas", "list-sa")).toEqual([
      { one: { uniqueid: "1" } },
      { two: { uniqueid: "2" } },
    ]);
    expect(server.heard.map(({ type }) => type)).toEqual([
      PACKET.register,
      PACKET.request,
      PACKET.unregister,
    ]);
    client.close();
  });

  test("tells a refusal in charon's words, never what was asked", async () => {
    await using server = await charon((_, send) =>
      send({ type: PACKET.response, message: { success: "no", errmsg: "parsing failed" } }),
    );
    const client = await ViciClient.open(server.path);
    const said = await messageOf(client.request("load-shared", { data: "the-secret" }));
    expect(said).toBe('charon refuses "load-shared": parsing failed');
    expect(client.isOpen).toBe(true);
    client.close();
  });

  test("ends what waits when charon goes, sends garbage, or is not there", async () => {
    await using server = await charon((_, __, socket) => socket.destroy());
    let closes = 0;
    const client = await ViciClient.open(server.path, () => {
      closes += 1;
    });
    expect(await messageOf(client.request("version"))).toMatch(/closed|broke/);
    expect(await messageOf(client.request("version"))).toMatch(/closed|broke/);
    expect([client.isOpen, closes]).toEqual([false, 1]);
    await using liar = await charon((_, __, socket) => socket.write(Uint8Array.of(0, 0, 0, 2, 1, 99)));
    const second = await ViciClient.open(liar.path);
    expect((await refusalOf(second.request("version"))) as Error).toBeInstanceOf(ViciFormatError);
    expect(await messageOf(ViciClient.open(`${server.path}.none`))).toContain(".none");
  });
});
