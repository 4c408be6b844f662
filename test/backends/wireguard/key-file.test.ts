import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "flannel/sdk";
import { derivePublicKey, generatePrivateKey, isPublicKey } from "../../../backends/wireguard/key.ts";
import { findKey, type KeyPlaces, keepKey, keyPlaces } from "../../../backends/wireguard/key-file.ts";

let folder: string;
let places: KeyPlaces;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flannel-key-"));
  places = { durable: join(folder, "lib/flannel/wgkey"), upstream: join(folder, "run/flannel/wgkey") };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(file: string, text: string, mode = 0o400): void {
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text, { mode });
  chmodSync(file, mode);
}

function faultOf(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("no fault");
}

test("the places are upstream's and one that lasts; WIREGUARD_KEY_FILE is the only one when it is set", () => {
  expect(keyPlaces({})).toEqual({ durable: "/var/lib/flannel/wgkey", upstream: "/run/flannel/wgkey" });
  expect(keyPlaces({ WIREGUARD_KEY_FILE: "/etc/key" }).named).toBe("/etc/key");
});

describe("a node without a key", () => {
  test("gets one that lasts, readable by its owner only, and nothing else is left", () => {
    expect(findKey(places)).toBeUndefined();
    expect(existsSync(places.durable)).toBe(false);
    const made = keepKey(places);
    expect(made).toMatchObject({ file: places.durable, origin: "made", durable: true, exposed: false });
    expect(isPublicKey(made.publicKey)).toBe(true);
    expect(statSync(places.durable).mode & 0o777).toBe(0o400);
    // As upstream writes it, so that upstream can read it: no line end.
    expect(readFileSync(places.durable, "utf8")).toBe(made.privateKey);
    expect(readdirSync(join(places.durable, ".."))).toEqual(["wgkey"]);
    expect(keepKey(places)).toEqual({ ...made, origin: "read" });
  });

  test("gets it where WIREGUARD_KEY_FILE says", () => {
    const named = join(folder, "etc/deep/key");
    expect(keepKey({ ...places, named })).toMatchObject({ file: named, origin: "made", durable: true });
    expect([existsSync(places.durable), existsSync(places.upstream)]).toEqual([false, false]);
  });

  test("gets it in upstream's place where the lasting one cannot be written, and is told", () => {
    write(join(folder, "lib"), "a file where a folder belongs");
    const made = keepKey(places);
    expect(made).toMatchObject({ file: places.upstream, origin: "made", durable: false });
    expect(keepKey(places)).toMatchObject({ publicKey: made.publicKey, durable: false });
  });
});

describe("upstream's key", () => {
  test("is taken over once, and stays where it is", () => {
    const key = generatePrivateKey();
    write(places.upstream, `${key}\n`);
    const taken = keepKey(places);
    expect(taken).toMatchObject({
      privateKey: key,
      file: places.durable,
      origin: "taken over from upstream",
    });
    expect(existsSync(places.upstream)).toBe(true);
    write(places.upstream, generatePrivateKey(), 0o600);
    expect(keepKey(places)).toMatchObject({ publicKey: derivePublicKey(key), origin: "read" });
  });

  test("is not looked at when WIREGUARD_KEY_FILE is set", () => {
    const key = generatePrivateKey();
    write(places.upstream, key);
    const { publicKey } = keepKey({ ...places, named: join(folder, "key") });
    expect(publicKey).not.toBe(derivePublicKey(key));
  });
});

describe("a bad key file", () => {
  const contents = {
    empty: "",
    "too short": Buffer.alloc(31, 1).toString("base64"),
    hex: Buffer.alloc(32, 1).toString("hex"),
    quoted: `"${Buffer.alloc(32, 1).toString("base64")}"`,
    large: "x".repeat(5000),
    binary: "\u0000\u0001",
  };
  test.each(Object.entries(contents))(
    "that is %s is refused by name, not shown, and left as it is",
    (_, text) => {
      write(places.durable, text);
      const fault = faultOf(() => keepKey(places));
      expect(fault.code).toBe("WIREGUARD_KEY_FILE");
      expect(fault.message).toContain(places.durable);
      if (text.length > 5) expect(`${fault.message} ${fault.hint}`).not.toContain(text.slice(0, 6));
      expect(readFileSync(places.durable, "utf8")).toBe(text);
      expect(existsSync(places.upstream)).toBe(false);
    },
  );

  test("in upstream's place is refused, too: upstream would not start either", () => {
    write(places.upstream, "nonsense");
    expect(faultOf(() => keepKey(places)).message).toContain(places.upstream);
    expect(existsSync(places.durable)).toBe(false);
  });

  test("that is a folder, or an empty name, is refused", () => {
    mkdirSync(places.durable, { recursive: true });
    expect(faultOf(() => keepKey(places)).message).toContain("no regular file");
    expect(faultOf(() => findKey({ ...places, named: "" })).message).toContain("set but empty");
  });
});

test("a key others may read is used, and pointed out; a link is followed", () => {
  const key = generatePrivateKey();
  write(join(folder, "secret"), key, 0o644);
  const named = join(folder, "link");
  symlinkSync("secret", named);
  expect(keepKey({ ...places, named })).toMatchObject({ privateKey: key, exposed: true });
});
