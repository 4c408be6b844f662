import * as v from "valibot";

/** Highest VXLAN network identifier: 24 bits (RFC 7348 §5). */
const MAX_VNI = 0xffffff;

/** An absent or null key takes the default, as Go's decoder leaves the zero value alone on null. */
const flag = (name: string) => v.nullish(v.boolean(`${name} must be true or false`), false);

const wholeNumber = (name: string, min: number, max: number) => {
  const message = `${name} must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
};

/** The `Backend` keys of vxlan (upstream's names and defaults). `MTU` is the MTU of the underlay, not of pods. */
export const options = v.object({
  VNI: v.nullish(wholeNumber("VNI", 0, MAX_VNI), 1),
  /** 0 lets the kernel choose its default, 8472. */
  Port: v.nullish(wholeNumber("Port", 0, 65535), 0),
  /** 0 follows the external interface. */
  MTU: v.nullish(
    v.union(
      [v.literal(0), wholeNumber("MTU", 646, 65535)],
      "MTU must be 0 (follow the interface) or a whole number from 646 to 65535",
    ),
    0,
  ),
  GBP: flag("GBP"),
  Learning: flag("Learning"),
  DirectRouting: flag("DirectRouting"),
  /** Drop what others than members send to the port. */
  MembersOnly: flag("MembersOnly"),
  /** Of our devices: some NICs and NATs spoil the checksums of encapsulated TCP; `off` computes them up front. */
  ChecksumOffload: v.nullish(
    v.picklist(["auto", "on", "off"], 'ChecksumOffload must be "auto", "on" or "off"'),
    "auto",
  ),
});

export type Options = v.InferOutput<typeof options>;
