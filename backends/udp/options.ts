import * as v from "valibot";

/** Upstream's port of this backend; datagrams of both families, on sockets of their own. */
const DEFAULT_PORT = 8285;

const port = (name: string) => {
  const message = `${name} must be a whole number from 1 to 65535`;
  return v.nullish(
    v.pipe(v.number(message), v.integer(message), v.minValue(1, message), v.maxValue(65535, message)),
    DEFAULT_PORT,
  );
};

const keys = v.object({
  /** Port of the IPv4 socket, and of peers that do not tell theirs. */
  Port: port("Port"),
  /** The same for IPv6, which upstream does not have. */
  PortV6: port("PortV6"),
  /** Taken as other backends take it, and without effect: every datagram's sender is looked at anyway. */
  MembersOnly: v.nullish(v.boolean("MembersOnly must be true or false")),
  /** `off` moves every packet by itself, where offloads of the kernel turn out to be broken. */
  Offload: v.nullish(v.picklist(["auto", "off"], 'Offload must be "auto" or "off"'), "auto"),
});

/** The `Backend` keys of udp. An absent or null key takes the default. */
export const options = v.pipe(
  keys,
  v.transform(({ MembersOnly: _, ...effective }) => effective),
);

export type Options = v.InferOutput<typeof options>;
