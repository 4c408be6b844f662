import { inNamespace } from "../in-namespace.ts";
import type { Namespace } from "../namespace.ts";

/** Answers HTTP inside a namespace, from this process; gone at the end of the scope. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
  /** `http://address:port` */
  readonly url: string;
}

/**
 * Listens in a namespace (this process's own without one) on an address it has, `port` 0 for any. What `answer` throws is a mistake of the test: it is
 * answered with 500 and kept for {@link problems}.
 */
export function listen(
  namespace: Namespace | undefined,
  { address, port = 0 }: { readonly address: string; readonly port?: number },
  answer: (request: Request) => Response | Promise<Response>,
): Listener {
  const serve = () =>
    Bun.serve({
      hostname: address,
      port,
      idleTimeout: 255,
      async fetch(request) {
        try {
          return await answer(request);
        } catch (error) {
          problems.push(error);
          return new Response(String(error), { status: 500 });
        }
      },
    });
  const server = namespace ? inNamespace(namespace, serve) : serve();
  const bound = server.port ?? 0;
  return {
    port: bound,
    url: `http://${address}:${bound}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** What went wrong in counterparts of this process: a request they were not made for, a request against the rules. */
export const problems: unknown[] = [];
