/**
 * Ports to choose from: below the range the kernel takes source ports from (ip_local_port_range, from 32768), so that
 * no outgoing connection can take one between the choice and its use.
 */
const FIRST = 10_240;
const LAST = 32_767;

/**
 * `count` TCP ports of 127.0.0.1 that nobody listened on a moment ago. All are held at once before they are given
 * back, so that they differ.
 */
export async function freePorts(count: number): Promise<number[]> {
  const listeners = Array.from({ length: count }, listenSomewhere);
  const ports = listeners.map((listener) => listener.port);
  for (const listener of listeners) listener.stop(true);
  return ports;
}

function listenSomewhere(): { readonly port: number; stop(now: boolean): void } {
  for (let tries = 0; ; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    try {
      return Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
    } catch (error) {
      if (tries > 100) throw error;
    }
  }
}
