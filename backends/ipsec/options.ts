import * as v from "valibot";

/** Shortest pre-shared key, characters: upstream's limit, 48 random bytes in hex. */
const SHORTEST_PSK = 96;
/** A VICI value has a 16-bit length. */
const LONGEST_PSK = 4096;
/** Algorithms joined by dashes, as strongSwan writes them. */
const PROPOSAL = /^[a-z0-9_]+(-[a-z0-9_]+)*$/i;

const PSK = "PSK must be a text of 96 to 4096 characters, the same on all nodes: openssl rand -hex 48";

/** The `Backend` keys of ipsec (upstream's names and defaults). No message shows a value of `PSK`. */
export const options = v.object({
  PSK: v.pipe(v.string(PSK), v.minLength(SHORTEST_PSK, PSK), v.maxLength(LONGEST_PSK, PSK)),
  /** ESP in UDP also where no NAT lies between. */
  UDPEncap: v.nullish(v.boolean("UDPEncap must be true or false"), false),
  ESPProposal: v.nullish(
    v.pipe(
      v.string("ESPProposal must be a text"),
      v.regex(PROPOSAL, 'ESPProposal must be algorithms joined by dashes, such as "aes256gcm16-ecp384"'),
    ),
    "aes128gcm16-sha256-prfsha256-ecp256",
  ),
});

export type Options = v.InferOutput<typeof options>;
