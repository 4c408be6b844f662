/*
 * The yardstick for the udp backend: the smallest useful proxy between a TUN device and a UDP socket, one packet per
 * system call. Same wire format, one peer, TTL decremented both ways.
 *
 *   udp-proxy DEVICE LOCAL PEER PORT
 *
 * The device is not persistent; whoever starts this gives it its address, route and MTU. Says "ready" on standard output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what) {
  perror(what);
  exit(1);
}

/* RFC 1624: the TTL is the upper byte of its word, so the checksum grows by 0x0100. Returns 0 when the TTL is used up. */
static int forwardable(unsigned char *ip, ssize_t length) {
  if (length < 20 || ip[0] >> 4 != 4 || ip[8] <= 1) return 0;
  ip[8]--;
  unsigned sum = (ip[10] << 8 | ip[11]) + 0x100;
  if (sum >= 0xffff) sum -= 0xffff;
  ip[10] = sum >> 8;
  ip[11] = sum;
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: udp-proxy DEVICE LOCAL PEER PORT\n");
    return 2;
  }
  int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (tun < 0) die("/dev/net/tun");
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);
  if (ioctl(tun, TUNSETIFF, &request) < 0) die("TUNSETIFF");

  int sock = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[4]))};
  struct sockaddr_in peer = local;
  if (inet_pton(AF_INET, argv[2], &local.sin_addr) != 1 || inet_pton(AF_INET, argv[3], &peer.sin_addr) != 1) {
    fprintf(stderr, "not an address\n");
    return 2;
  }
  if (bind(sock, (struct sockaddr *)&local, sizeof local) < 0) die("bind");
  int size = 8 << 20;
  setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  puts("ready");
  fflush(stdout);

  static unsigned char packet[65536];
  struct pollfd files[2] = {{.fd = tun, .events = POLLIN}, {.fd = sock, .events = POLLIN}};
  for (;;) {
    if (poll(files, 2, -1) < 0 && errno != EINTR) die("poll");
    for (int busy = 1; busy;) {
      busy = 0;
      ssize_t length = read(tun, packet, sizeof packet);
      if (length > 0) {
        busy = 1;
        if (forwardable(packet, length)) sendto(sock, packet, length, 0, (struct sockaddr *)&peer, sizeof peer);
      }
      length = recv(sock, packet, sizeof packet, 0);
      if (length > 0) {
        busy = 1;
        if (forwardable(packet, length) && write(tun, packet, length) < 0 && errno != EAGAIN && errno != EINVAL)
          die("write");
      }
    }
  }
}
