import { listBackends } from "./cli/commands/backends.ts";
import { checkConfig } from "./cli/commands/config-check.ts";
import { versionText } from "./cli/commands/version.ts";
import { type CommandLine, parseCommandLine, renderHelp } from "./cli/flags.ts";
import { print } from "./cli/print.ts";
import { renderFault, renderWarning } from "./cli/report.ts";
import { toFault } from "./observe/fault.ts";
import { discoverPlugins, pluginRoots } from "./registry/discover.ts";
import { embeddedRoot } from "./registry/embedded.ts";
import type { Registry } from "./registry/registry.ts";

process.exitCode = await main(process.argv.slice(2));
// Nothing may keep the process alive once the command is done: not a stray timer, not a plugin's socket.
process.exit();

async function main(argv: readonly string[]): Promise<number> {
  try {
    const line = parseCommandLine(argv, process.env);
    // Asked for by a word the answer goes to standard output; by a flag to standard error, as Go programs do.
    const answer = argv[0]?.startsWith("-") === false ? process.stdout : process.stderr;
    return await runCommand(line, answer);
  } catch (error) {
    process.stderr.write(renderFault(toFault(error, "INTERNAL", "unexpected: ", "Please report this.")));
    return 1;
  }
}

async function runCommand(line: CommandLine, answer: NodeJS.WriteStream): Promise<number> {
  const discover = () => discoverRegistry(line);
  switch (line.command) {
    case "help":
      answer.write(renderHelp(line.topic));
      return 0;
    case "version":
      answer.write(`${versionText()}\n`);
      return 0;
    case "backends":
      print(listBackends(discover(), line.output));
      return 0;
    case "config-check": {
      const { text, warnings } = await checkConfig(line.operand, discover());
      for (const warning of warnings) process.stderr.write(renderWarning(warning));
      print(text);
      return 0;
    }
    case "status":
      return tell(async () => (await import("./cli/commands/status.ts")).showStatus(line));
    case "explain":
      return tell(async () => (await import("./cli/commands/explain.ts")).explain(line));
    case "journal":
      return tell(async () => (await import("./cli/commands/journal.ts")).showJournal(line));
    case "leases-ls":
      return tell(async () => (await import("./cli/commands/leases-ls.ts")).listLeases(line));
    case "leases-reserve":
      return tell(async () => (await import("./cli/commands/leases-reserve.ts")).reserveLease(line));
    case "leases-release":
      return tell(async () => (await import("./cli/commands/leases-release.ts")).releaseLease(line));
    case "check":
      return tell(async () => (await import("./cli/commands/check.ts")).preflight(line, discover));
    case "probe":
      return tell(async () => (await import("./cli/commands/probe.ts")).probePeers(line));
    case "cleanup":
      return tell(async () => (await import("./cli/commands/cleanup.ts")).cleanUp(line, discover));
    case "bundle":
      return tell(async () => (await import("./cli/commands/bundle.ts")).writeBundle(line, discover));
    case "docker-opts":
      return tell(async () => (await import("./cli/commands/docker-opts.ts")).writeDockerOptions(line));
    case "run": {
      const { runDaemon } = await import("./cli/commands/run.ts");
      return runDaemon(line, discover);
    }
  }
}

/** Prints what came of a command; 2 is the exit code when it could not be carried out. */
async function tell(show: () => Promise<{ readonly text: string; readonly code: number }>): Promise<number> {
  try {
    const { text, code } = await show();
    print(text);
    return code;
  } catch (error) {
    process.stderr.write(renderFault(toFault(error, "INTERNAL", "unexpected: ", "Please report this.")));
    return 2;
  }
}

function discoverRegistry({ options }: CommandLine): Registry {
  return discoverPlugins({
    embeddedRoot: embeddedRoot(),
    roots: pluginRoots(options.pluginDir),
    allowOverride: options.allowOverride,
  });
}
