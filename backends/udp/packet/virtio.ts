/** `struct virtio_net_hdr` before each packet of the TUN device (linux/virtio_net.h); offsets from its start. */
export const VNET = {
  flags: 0,
  gsoType: 1,
  headerLength: 2,
  gsoSize: 4,
  checksumStart: 6,
  checksumOffset: 8,
} as const;

/** Flag: the checksum field holds the pseudo header's sum, the rest is for whoever sends it on. */
export const NEEDS_CHECKSUM = 1;
/** Kinds of large packets; ECN is a bit beside them. */
export const GSO = { none: 0, tcp4: 1, tcp6: 4, udp: 5, ecn: 0x80 } as const;
