import * as v from "valibot";
import { decodeKey } from "./key.ts";

/** An absent or null key takes the default, as Go's decoder leaves the zero value alone on null. */
const wholeNumber = (name: string, min: number, max: number) => {
  const message = `${name} must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
};

/** The smallest IPv4 MTU every host accepts, 576 (RFC 791), and the overhead. */
const SMALLEST_MTU = 656;

const PSK_RULE =
  "PSK must be 32 bytes as base64 in quotes (44 characters, as `wg genpsk` prints them), or empty for none";
const MODE_RULE = 'Mode must be "separate", "auto", "ipv4" or "ipv6"';

/** The `Backend` keys of wireguard (upstream's names and defaults). `MTU` is the MTU of the underlay, not of pods. */
export const options = v.object({
  ListenPort: v.nullish(wholeNumber("ListenPort", 1, 65535), 51820),
  /** Of the IPv6 device, in mode `separate` only. */
  ListenPortV6: v.nullish(wholeNumber("ListenPortV6", 1, 65535), 51821),
  /** 0 follows the external interface. */
  MTU: v.nullish(
    v.union(
      [v.literal(0), wholeNumber("MTU", SMALLEST_MTU, 65535)],
      `MTU must be 0 (follow the interface) or a whole number from ${SMALLEST_MTU} to 65535`,
    ),
    0,
  ),
  /** A secret all nodes share, beside the keys of each pair. Empty is none. */
  PSK: v.nullish(
    v.pipe(
      v.string(PSK_RULE),
      v.check((text) => text === "" || decodeKey(text) !== undefined, PSK_RULE),
    ),
    "",
  ),
  /** Seconds; 0 is off. */
  PersistentKeepaliveInterval: v.nullish(wholeNumber("PersistentKeepaliveInterval", 0, 65535), 0),
  /** `separate`: a device per family, over its own family. The others: one device for both, over … */
  Mode: v.nullish(
    v.pipe(
      v.string(MODE_RULE),
      v.transform((text) => text.toLowerCase()),
      v.picklist(["separate", "auto", "ipv4", "ipv6"], MODE_RULE),
    ),
    "separate",
  ),
});

export type Options = v.InferOutput<typeof options>;
