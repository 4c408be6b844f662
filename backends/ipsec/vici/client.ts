import { connect, type Socket } from "node:net";
import { decodePacket, encodePacket, PACKET, type Packet, type PacketType } from "./codec.ts";
import { Frames } from "./frames.ts";
import { textOf, type ViciMessage } from "./message.ts";

/** charon answers at once, except while it waits for others: nothing that is asked here does. */
const ANSWER_MS = 10_000;
const CONNECT_MS = 2_000;

/** charon cannot be asked, or says no. Shows no value of a request. */
export class ViciError extends Error {}

/** Who waits for the answer to what was sent last. */
interface Waiting {
  readonly answered: (packet: Packet) => void;
  readonly failed: (error: Error) => void;
  readonly events: ViciMessage[];
}

/** A connection to charon. Requests are answered one after the other. */
export class ViciClient {
  readonly #socket: Socket;
  readonly #frames = new Frames();
  #waiting: Waiting | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #closed: Error | undefined;

  private constructor(socket: Socket, onClose: () => void) {
    this.#socket = socket;
    socket.on("data", (bytes: Uint8Array) => this.#receive(bytes));
    socket.on("error", (error) =>
      this.#fail(new ViciError(`the connection to charon broke: ${error.message}`)),
    );
    socket.on("close", () => {
      this.#fail(new ViciError("charon closed the connection"));
      onClose();
    });
  }

  /** Connects to charon's socket; `onClose` is called once when the connection is over. Throws {@link ViciError}. */
  static open(path: string, onClose: () => void = () => {}): Promise<ViciClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ path });
      const refuse = (why: string) => {
        socket.destroy();
        reject(new ViciError(`${path}: ${why}`));
      };
      const late = setTimeout(() => refuse("no connection"), CONNECT_MS);
      const refused = (error: Error) => {
        clearTimeout(late);
        refuse(error.message);
      };
      socket.once("error", refused);
      socket.once("connect", () => {
        clearTimeout(late);
        socket.off("error", refused);
        resolve(new ViciClient(socket, onClose));
      });
    });
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  /** Sends a command and returns its answer. Throws {@link ViciError} when charon refuses, with charon's own words. */
  request(command: string, message: ViciMessage = {}): Promise<ViciMessage> {
    return this.#take(async () => (await this.#command(command, message, [])).message);
  }

  /** Sends a command that is answered by events of that name, and returns these. Throws {@link ViciError}. */
  list(command: string, event: string, message: ViciMessage = {}): Promise<readonly ViciMessage[]> {
    return this.#take(async () => {
      await this.#subscription(PACKET.register, event);
      const events: ViciMessage[] = [];
      await this.#command(command, message, events);
      await this.#subscription(PACKET.unregister, event);
      return events;
    });
  }

  close(): void {
    this.#fail(new ViciError("the connection to charon is closed"));
    this.#socket.destroy();
  }

  /** What is asked later waits for what was asked before. */
  #take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #command(command: string, message: ViciMessage, events: ViciMessage[]): Promise<Packet> {
    const answer = await this.#send(PACKET.request, command, message, events);
    if (answer.type === PACKET.unknownCommand) throw new ViciError(`charon does not know "${command}"`);
    if (answer.type !== PACKET.response)
      throw new ViciError(`charon answers "${command}" with type ${answer.type}`);
    if (textOf(answer.message, "success") === "no") {
      throw new ViciError(
        `charon refuses "${command}": ${textOf(answer.message, "errmsg") ?? "no reason given"}`,
      );
    }
    return answer;
  }

  async #subscription(type: PacketType, event: string): Promise<void> {
    const answer = await this.#send(type, event, {}, []);
    if (answer.type !== PACKET.confirm) throw new ViciError(`charon does not know the event "${event}"`);
  }

  #send(type: PacketType, name: string, message: ViciMessage, events: ViciMessage[]): Promise<Packet> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const late = setTimeout(() => {
        this.#fail(new ViciError(`charon does not answer "${name}" within ${ANSWER_MS} ms`));
        this.#socket.destroy();
      }, ANSWER_MS);
      const end = () => {
        clearTimeout(late);
        this.#waiting = undefined;
      };
      this.#waiting = {
        events,
        answered: (packet) => {
          end();
          resolve(packet);
        },
        failed: (error) => {
          end();
          reject(error);
        },
      };
      this.#socket.write(encodePacket({ type, name, message }));
    });
  }

  #receive(bytes: Uint8Array): void {
    try {
      for (const frame of this.#frames.push(bytes)) {
        const packet = decodePacket(frame);
        if (packet.type === PACKET.event) this.#waiting?.events.push(packet.message);
        else this.#waiting?.answered(packet);
      }
    } catch (error) {
      this.#fail(error instanceof Error ? error : new ViciError(String(error)));
      this.#socket.destroy();
    }
  }

  /** The connection is of no use any more. */
  #fail(error: Error): void {
    this.#closed ??= error;
    this.#waiting?.failed(error);
  }
}
