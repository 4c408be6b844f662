import type { Finding } from "../../observe/finding.ts";

/** Stable codes of what the member filter reports. */
export const MEMBERS = {
  noTool: "MEMBERS_NO_TOOL",
  failed: "MEMBERS_FAILED",
  contested: "MEMBERS_CONTESTED",
} as const;

/** The filter is wanted, but there is no `nft`. */
export function noToolFinding(): Finding {
  return {
    code: MEMBERS.noTool,
    severity: "error",
    title: "packets of strangers are accepted",
    text: `"MembersOnly" is on, but nft is not installed: this node unpacks what anybody sends to it`,
    fix: `Install nftables, or turn "MembersOnly" off and filter in front of the hosts.`,
  };
}

/** The filter is not as it should be, for whatever reason. */
export function failedFinding(text: string, fix: string): Finding {
  return {
    code: MEMBERS.failed,
    severity: "error",
    title: "the member filter is not as it should be",
    text,
    fix: fix || "It is tried again and again; look at the log around it.",
  };
}

/** What we write is changed again each time. */
export function contestedFinding(): Finding {
  return {
    code: MEMBERS.contested,
    severity: "warning",
    title: "the member filter does not stay as it is written",
    text: "something changes nftables table flannel-members each time it is set; it is set again ever more slowly",
    fix: "Find who changes it: `nft monitor`; a second flanneld with MembersOnly on this host would do it.",
  };
}
