import { existsSync, readFileSync } from 'node:fs'
import type { Mutant } from './find-mutants.ts'

/** A mutant that no test has to notice. Its line may move. */
export interface Accepted {
  readonly file: string
  readonly within: string
  readonly from: string
  readonly to: string
  /** Why nobody could notice it, or why nobody has to. */
  readonly reason: string
}

/** Returns the mutants that a file lists as accepted; none where there is no file. */
export function readAccepted(path: string): Accepted[] {
  if (!existsSync(path)) return []
  const list: Accepted[] = JSON.parse(readFileSync(path, 'utf8'))
  for (const accepted of list) {
    if (!accepted.reason) throw new Error(`${path}: say why ${accepted.file} may be: ${accepted.to}`)
  }
  return list
}

export const isSame = (accepted: Accepted, mutant: Mutant): boolean =>
  accepted.file === mutant.file &&
  accepted.within === mutant.within &&
  accepted.from === mutant.from &&
  accepted.to === mutant.to
