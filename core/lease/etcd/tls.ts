import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { describeError, Fault } from "../../observe/fault.ts";

/** Files of `--etcd-cafile`, `--etcd-certfile`, `--etcd-keyfile`; each may be absent. */
export interface TlsFiles {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** PEM contents for https endpoints. */
export interface TlsMaterial {
  /** Trusted roots; undefined = those built into the runtime. */
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** What is odd but not fatal, e.g. a certificate that has ended. */
  readonly warnings: readonly string[];
}

/**
 * Where systems keep their trusted roots, in Go's order (crypto/x509/root_linux.go), so that a private authority
 * installed on the host is trusted as it is by upstream.
 */
const SYSTEM_ROOTS = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

const CERTIFICATE = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[\s\S]+?-----END (?:TRUSTED )?CERTIFICATE-----/g;

/**
 * Reads and checks the files before the first connection. A CA alone is enough (server verified, no client
 * certificate); a certificate needs its key and the other way round.
 * @throws Fault `ETCD_TLS_FILE` naming flag and file.
 */
export function loadTls(files: TlsFiles): TlsMaterial {
  const { caFile, certFile, keyFile } = files;
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const [given, missing] = certFile === undefined ? ["keyfile", "certfile"] : ["certfile", "keyfile"];
    throw new Fault("ETCD_TLS_FILE", `--etcd-${given} is given without --etcd-${missing}`, {
      hint: "a client certificate and its private key belong together: give both or neither",
    });
  }
  const warnings: string[] = [];
  const ca = caFile === undefined ? systemRoots() : readCertificates("--etcd-cafile", caFile, warnings);
  if (certFile === undefined || keyFile === undefined) return { ...(ca ? { ca } : {}), warnings };
  const cert = readCertificates("--etcd-certfile", certFile, warnings);
  const key = readKey(keyFile, cert, certFile);
  return { ...(ca ? { ca } : {}), cert, key, warnings };
}

function readCertificates(flag: string, file: string, warnings: string[]): Buffer {
  const content = read(flag, file);
  const blocks = content.toString("latin1").match(CERTIFICATE) ?? [];
  if (blocks.length === 0) throw invalid(flag, file, "holds no PEM certificate");
  for (const block of blocks) {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(block);
    } catch {
      throw invalid(flag, file, "holds a PEM certificate that cannot be decoded");
    }
    // Only a warning: after a power cut a clock may be years off, and the server judges by its own.
    if (Date.parse(certificate.validTo) < Date.now()) {
      warnings.push(`${flag} ${file}: the certificate ended at ${certificate.validTo}`);
    } else if (Date.parse(certificate.validFrom) > Date.now()) {
      warnings.push(`${flag} ${file}: the certificate begins only at ${certificate.validFrom}`);
    }
  }
  return content;
}

function readKey(file: string, cert: Buffer, certFile: string): Buffer {
  const content = read("--etcd-keyfile", file);
  let matches: boolean;
  try {
    matches = new X509Certificate(cert).checkPrivateKey(createPrivateKey(content));
  } catch {
    throw invalid(
      "--etcd-keyfile",
      file,
      "holds no usable PEM private key (an encrypted one cannot be used)",
    );
  }
  if (!matches) throw invalid("--etcd-keyfile", file, `does not belong to the certificate in ${certFile}`);
  return content;
}

function read(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Fault("ETCD_TLS_FILE", `${flag} ${file}: ${describeError(error)}`, {
      hint: `check that ${file} exists and that the daemon's user may read it`,
      cause: error,
    });
  }
}

function invalid(flag: string, file: string, reason: string): Fault {
  return new Fault("ETCD_TLS_FILE", `${flag} ${file} ${reason}`, {
    hint: `look at it with: openssl ${flag === "--etcd-keyfile" ? "pkey" : "x509"} -in ${file} -noout -text`,
  });
}

function systemRoots(): Buffer | undefined {
  const chosen = process.env.SSL_CERT_FILE;
  for (const file of chosen ? [chosen, ...SYSTEM_ROOTS] : SYSTEM_ROOTS) {
    try {
      return readFileSync(file);
    } catch {
      // The next place; without any the runtime's own roots are used.
    }
  }
  return undefined;
}
