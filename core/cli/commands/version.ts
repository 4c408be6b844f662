declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;

/** Version of this build; `dev` when run from source. */
export function versionText(): string {
  return typeof BUILD_VERSION === "undefined" ? "dev" : BUILD_VERSION;
}

/** Commit of this build, empty when unknown. */
export function commitText(): string {
  return typeof BUILD_COMMIT === "undefined" ? "" : BUILD_COMMIT;
}
