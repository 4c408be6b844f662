import { listBackends } from "./cli/commands/backends.ts";
import { checkConfig } from "./cli/commands/config-check.ts";
import { versionText } from "./cli/commands/version.ts";
import { type CommandLine, parseCommandLine, renderHelp } from "./cli/flags.ts";
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
      process.stdout.write(listBackends(discover(), line.output));
      return 0;
    case "config-check": {
      const { text, warnings } = await checkConfig(line.file, discover());
      for (const warning of warnings) process.stderr.write(renderWarning(warning));
      process.stdout.write(text);
      return 0;
    }
    case "run": {
      const { runDaemon } = await import("./cli/commands/run.ts");
      return runDaemon(line, discover);
    }
  }
}

function discoverRegistry({ options }: CommandLine): Registry {
  return discoverPlugins({
    embeddedRoot: embeddedRoot(),
    roots: pluginRoots(options.pluginDir),
    allowOverride: options.allowOverride,
  });
}
