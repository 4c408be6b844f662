/**
 * `count` TCP ports of 127.0.0.1 that nobody listened on a moment ago. All are held at once before they are given
 * back, so that they differ.
 */
export async function freePorts(count: number): Promise<number[]> {
  const listeners = Array.from({ length: count }, () =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  );
  const ports = listeners.map((listener) => listener.port);
  for (const listener of listeners) listener.stop(true);
  return ports;
}
