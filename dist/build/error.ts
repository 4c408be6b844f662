/** A build that cannot go on, told in one line. */
export class BuildError extends Error {
  override readonly name = "BuildError";
}
