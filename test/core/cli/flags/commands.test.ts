import { describe, expect, test } from "bun:test";
import { parse, refusal } from "./parse.ts";

describe("commands", () => {
  test.each([
    [[], "run"],
    [["run"], "run"],
    [["backends"], "backends"],
    [["version"], "version"],
    [["-version"], "version"],
    [["--version=true", "-ip-masq=nonsense"], "version"],
    [["-version=false"], "run"],
    [["help"], "help"],
    [["-h"], "help"],
    [["-v", "1", "--help"], "help"],
  ] as const)("%j is %s", (argv, command) => {
    expect(parse([...argv]).command).toBe(command);
  });

  test("help has a topic", () => {
    expect(parse(["help"]).topic).toBe("run");
    expect(parse(["help", "backends"]).topic).toBe("backends");
    expect(parse(["help", "config", "check"]).topic).toBe("config-check");
    expect(parse(["backends", "-h"]).topic).toBe("backends");
    expect(parse(["config", "-h"]).topic).toBe("config-check");
    expect(parse(["config", "check", "-help"]).topic).toBe("config-check");
    expect(refusal(["help", "bakends"]).hint).toBe("did you mean backends?");
  });

  test("config check takes one file", () => {
    expect(parse(["config", "check", "net.json"]).operand).toBe("net.json");
    expect(parse(["config", "check", "-plugin-dir", "/p", "-", "-v=1"])).toMatchObject({
      command: "config-check",
      operand: "-",
      options: { pluginDir: ["/p"], verbosity: 1 },
    });
    expect(parse(["config", "check", "--", "-odd-name"]).operand).toBe("-odd-name");
    expect(refusal(["config", "check"]).message).toBe("argument FILE is missing");
    expect(refusal(["config", "check", "a", "b"]).message).toBe('argument "b" is stray');
    expect(refusal(["config"]).code).toBe("COMMAND_UNKNOWN");
    expect(refusal(["config", "chek", "f"]).hint).toContain("flanneld config check");
  });

  test("a command has flags of its own, which others do not know", () => {
    const line = parse([
      "leases",
      "reserve",
      "-for",
      "192.0.2.7",
      "10.5.7.0/24",
      "--force",
      "--etcd-prefix=/x",
    ]);
    expect(line).toMatchObject({
      command: "leases-reserve",
      operand: "10.5.7.0/24",
      options: { etcdPrefix: "/x" },
    });
    expect(line.own.get("for")).toBe("192.0.2.7");
    expect(line.own.has("force")).toBe(true);
    expect(parse(["leases", "reserve", "s", "-for=n", "-force=false"]).own.has("force")).toBe(false);
    expect(parse(["cleanup"]).own.has("dry-run")).toBe(false);
    expect(refusal(["cleanup", "-dry-run=perhaps"]).message).toBe(
      'flag -dry-run: "perhaps" is neither true nor false',
    );
    expect(refusal(["leases", "reserve", "s", "-for"]).message).toBe("flag -for needs a value");
    expect(refusal(["cleanup", "--dryrun"]).hint).toBe("did you mean -dry-run?");
    expect(refusal(["probe", "--force"]).code).toBe("FLAG_UNKNOWN");
  });

  test("an argument may be left out where it is optional", () => {
    expect(parse(["probe"]).operand).toBe("");
    expect(parse(["probe", "192.0.2.7"]).operand).toBe("192.0.2.7");
    expect(refusal(["probe", "a", "b"]).message).toBe('argument "b" is stray');
    expect(refusal(["leases", "release"]).message).toBe("argument SUBNET is missing");
    expect(refusal(["leases"]).hint).toContain("flanneld leases ls");
    expect(parse(["help", "leases", "release"]).topic).toBe("leases-release");
    expect(parse(["help", "leases"]).topic).toBe("leases-ls");
  });

  test("backends has an output form", () => {
    expect(parse(["backends"]).output).toBe("text");
    expect(parse(["backends", "-o", "json"]).output).toBe("json");
    expect(parse(["backends", "--o=json"]).output).toBe("json");
    expect(refusal(["backends", "-o", "yaml"]).message).toBe('flag -o: "yaml" is none of text, json');
    expect(refusal(["backends", "-o"]).message).toBe("flag -o needs a value");
  });

  test("a typing mistake", () => {
    expect(refusal(["bakends"])).toMatchObject({ code: "COMMAND_UNKNOWN", hint: "did you mean backends?" });
  });

  test("help and version answer whatever the environment says", () => {
    for (const argv of [["help"], ["version"], ["--version"], ["-h"]]) {
      expect(parse(argv, { FLANNELD_V: "x", FLANNELD_IP_MASQ: "maybe" }).warnings).toEqual([]);
    }
  });
});
