import { Fault, type Host, type LinkState, type WireguardChange, type WireguardState } from "flannel/sdk";
import { DEVICE_NAMES, type Device } from "./devices.ts";
import type { PrivateKey } from "./key-file.ts";
import { startUserspace } from "./userspace/process.ts";
import { readUserspace, writeUserspace } from "./userspace/socket.ts";

/** A device that is there, wherever WireGuard runs. */
export interface OpenDevice {
  readonly name: string;
  readonly runsIn: "kernel" | "userspace";
  /** Whether it had to be made. */
  readonly made: boolean;
  /** Whether it listened on another port before. */
  readonly moved: boolean;
  /** `wg show DEV dump` */
  read(): Promise<WireguardState>;
  /** `wg set DEV …` */
  write(change: WireguardChange): Promise<void>;
}

/** What a device is to be like. */
export interface DeviceWish {
  readonly device: Device;
  readonly mtu: number;
  readonly key: PrivateKey;
}

/**
 * Makes the device where it is missing, in the kernel or, where that has no WireGuard, in user space; sets key, port
 * and MTU in place where they differ, and brings it up. Throws Fault `WIREGUARD_PORT_IN_USE`,
 * `WIREGUARD_DEVICE_FOREIGN`, `WIREGUARD_UNSUPPORTED` or `WIREGUARD_USERSPACE`.
 */
export async function ensureDevice(host: Host, wish: DeviceWish): Promise<OpenDevice> {
  const { device, mtu } = wish;
  const existing = await host.kernel.link(device.name);
  const open = existing ? await adoptDevice(host, existing, mtu) : await makeDevice(host, device.name, mtu);
  try {
    return await adjust(host, open, wish);
  } catch (error) {
    // It stays as it is, not up: to remove it and make it again with every try would be seen by all who watch devices.
    if (!isPortTaken(error)) throw error;
    if (!(await freePort(host, device))) throw portFault(device);
    return await adjust(host, open, wish).catch((again) => {
      throw isPortTaken(again) ? portFault(device) : again;
    });
  }
}

async function adjust(
  { kernel, log }: Host,
  open: OpenDevice,
  { device, mtu, key }: DeviceWish,
): Promise<OpenDevice> {
  const { name, port } = device;
  const { publicKey, listenPort } = await open.read();
  const change = {
    ...(publicKey === key.publicKey ? {} : { privateKey: key.privateKey }),
    ...(listenPort === port ? {} : { listenPort: port }),
  };
  // Before it is up, so that it never listens on another port.
  if (Object.keys(change).length > 0) await open.write(change);
  const link = await kernel.link(name);
  const adjusted = { ...(link?.mtu === mtu ? {} : { mtu }), ...(link?.up ? {} : { up: true }) };
  if (Object.keys(adjusted).length > 0) await kernel.setLink(name, adjusted);
  if (open.made) log.info(`made device ${name}`, { kind: open.runsIn, port, mtu });
  else if (Object.keys({ ...change, ...adjusted }).length > 0) {
    log.info(`adjusted device ${name}`, { port, mtu, up: true });
  }
  return { ...open, moved: !open.made && listenPort !== port };
}

/**
 * `wg set OTHER listen-port 0` where another device of ours has the port: ports may have been swapped, and a device that
 * a new mode does not need goes only when the lease is held. Its peers follow it to the port that it gets. False when
 * none of ours has it.
 */
async function freePort(host: Host, { name, port }: Device): Promise<boolean> {
  for (const other of DEVICE_NAMES.filter((each) => each !== name)) {
    const open = await recognise(host, await host.kernel.link(other));
    if ((await open?.read())?.listenPort !== port) continue;
    await open?.write({ listenPort: 0 });
    host.log.info(`${other} gave port ${port} to ${name}`);
    return true;
  }
  return false;
}

/** A device that is there and is WireGuard's. */
async function recognise(host: Host, link: LinkState | undefined): Promise<OpenDevice | undefined> {
  if (link?.type === "wireguard") return inKernel(host, link.name, false);
  return link?.type === "tun" && (await readUserspace(link.name)) ? inUserspace(link.name, false) : undefined;
}

async function adoptDevice(host: Host, link: LinkState, mtu: number): Promise<OpenDevice> {
  const open = await recognise(host, link);
  if (open) return open;
  const { name, type } = link;
  if (type !== "tun") {
    throw new Fault(
      "WIREGUARD_DEVICE_FOREIGN",
      `device "${name}" is of kind ${type ?? "none"}, not wireguard`,
      {
        hint: `Nothing of ours is named so and made like that. Look at \`ip -d link show ${name}\`, then: ip link delete ${name}`,
      },
    );
  }
  host.log.warn(`no WireGuard listens for device ${name}: making it anew`);
  await host.kernel.deleteLink(name);
  return makeDevice(host, name, mtu);
}

async function makeDevice(host: Host, name: string, mtu: number): Promise<OpenDevice> {
  try {
    await host.kernel.createLink({ name, type: "wireguard", mtu });
    return inKernel(host, name, true);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "LINK_KIND_UNSUPPORTED") throw error;
  }
  await startUserspace(host, name);
  return inUserspace(name, true);
}

function inKernel({ kernel }: Host, name: string, made: boolean): OpenDevice {
  return {
    name,
    runsIn: "kernel",
    made,
    moved: false,
    read: async () => (await kernel.wireguard(name)) ?? Promise.reject(gone(name)),
    write: (change) => kernel.setWireguard(name, change),
  };
}

function inUserspace(name: string, made: boolean): OpenDevice {
  return {
    name,
    runsIn: "userspace",
    made,
    moved: false,
    read: async () => (await readUserspace(name)) ?? Promise.reject(gone(name)),
    write: (change) => writeUserspace(name, change),
  };
}

/** It was deleted under our hands: the next sync makes it again. */
function gone(name: string): Fault {
  return new Fault("LINK_MISSING", `device "${name}" has gone`, { hint: "It is made again." });
}

/** How the kernel, and a process in its place, refuse a port. */
function isPortTaken(error: unknown): boolean {
  return error instanceof Fault && error.message.includes("EADDRINUSE");
}

function portFault({ name, port }: Device): Fault {
  return new Fault("WIREGUARD_PORT_IN_USE", `UDP port ${port}, which ${name} is to listen on, is in use`, {
    hint: `See who has it: ss -ulpn 'sport = :${port}' (a WireGuard device shows no process: wg show all listen-port). Free it, or choose another ListenPort or ListenPortV6 in the network config.`,
  });
}
