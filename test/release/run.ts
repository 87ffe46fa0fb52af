/**
 * Checks that the repository can be released, packs both packages, and publishes them; with `--dry-run` it publishes
 * nothing. CONTRIBUTING.md describes a release.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { faultsOf, originFields, readManifest } from './release-faults.ts'
import { packWith, tarballFaults } from './tarballs.ts'

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } })
const root = process.cwd()
const { fields, fault } = originFields(process.env.RELEASE_REPOSITORY)
const tarballs = packWith(fields ?? {}, root, mkdtempSync(join(tmpdir(), 'release-')))
const faults = [...faultsOf(root), ...(fault === undefined ? [] : [fault]), ...tarballFaults(tarballs, root)]

for (const line of faults) console.error(line)
if (faults.length > 0) process.exitCode = 1
else console.log(`${readManifest(root).version} can be released`)

for (const tarball of tarballs) {
  if (values['dry-run'] || faults.length > 0) console.log(`not published: ${tarball}`)
  else {
    execFileSync('npm', ['publish', tarball], { stdio: 'inherit' })
    console.log(`published: ${basename(tarball)}`)
  }
}
