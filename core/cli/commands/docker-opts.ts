import { readFileSync } from "node:fs";
import { writeFileAtomically } from "../../host/atomic-file.ts";
import { run } from "../../host/exec.ts";
import { readVariables } from "../../host/subnet-file.ts";
import { canonicalPrefix } from "../../net/prefix.ts";
import { openKernel } from "../../netlink/open.ts";
import { Fault } from "../../observe/fault.ts";
import type { Log } from "../../observe/log.ts";
import { announce, commandLog } from "../command-log.ts";
import { renderDockerOptions } from "../docker-opts.ts";
import type { CommandLine } from "../flags.ts";
import type { Answered } from "./status.ts";

/** What the script of the same purpose writes to. */
const DEFAULT_FILE = "/run/docker_opts.env";
const DEFAULT_KEY = "DOCKER_OPTS";

/**
 * `flanneld docker-opts [-f FILE] [-d FILE] [-i] [-c] [-k NAME] [-m]`: writes the options of dockerd that follow from
 * the subnet file. A missing subnet file gives none.
 * @throws Fault `DOCKER_OPTIONS`: a bad value, a file that cannot be written, or a subnet that lies on another host.
 */
export async function writeDockerOptions(line: CommandLine): Promise<Answered> {
  announce(line);
  const { own, options } = line;
  const variables = readVariables(readText(own.get("f") ?? options.subnetFile));
  const neither = !own.has("i") && !own.has("c");
  const text = renderDockerOptions(
    variables,
    {
      individual: neither || own.has("i"),
      combined: neither || own.has("c"),
      key: own.get("k") ?? DEFAULT_KEY,
      withoutMasq: own.has("m"),
    },
    process.env,
  );
  const file = own.get("d") ?? DEFAULT_FILE;
  if (file !== "-") write(file, text);
  await refuseForeignSubnet(variables.get("FLANNEL_SUBNET"), commandLog(line));
  return { text: file === "-" ? text : "", code: 0 };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code = "unreadable" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "";
    throw new Fault("DOCKER_OPTIONS", `cannot read ${file}: ${code}`, {
      hint: "Name a readable subnet file by -f.",
    });
  }
}

function write(file: string, text: string): void {
  try {
    writeFileAtomically(file, text);
  } catch (error) {
    const { code = "unwritable" } = error as NodeJS.ErrnoException;
    throw new Fault("DOCKER_OPTIONS", `cannot write ${file}: ${code}`, {
      hint: "Run it as root, or name another file by -d.",
      cause: error,
    });
  }
}

/** A route through a gateway to this host's own subnet means that flanneld here lost it to another host. */
async function refuseForeignSubnet(subnet: string | undefined, log: Log): Promise<void> {
  const network = subnet === undefined ? undefined : canonicalPrefix(subnet);
  if (network === undefined) return;
  const kernel = await openKernel(log, run);
  try {
    const route = (await kernel.routes(4)).find(({ dst, via }) => dst === network && via !== undefined);
    if (!route) return;
    throw new Fault(
      "DOCKER_OPTIONS",
      `${network} is routed to another host, via ${route.via} dev ${route.dev}`,
      {
        hint: "The subnet file is out of date: restart flanneld, then docker.",
      },
    );
  } finally {
    kernel.close();
  }
}
