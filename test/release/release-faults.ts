import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folders of the packages, from the root of the repository, in the order in which they are published. */
export const PACKAGES = ['.', 'examples/deploy/package'] as const

/** The members of a `package.json` that a release reads. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly publishConfig?: Readonly<Record<string, unknown>>
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/** Returns why the repository in a folder cannot be released as it is, one line per fault. */
export function faultsOf(root: string): string[] {
  return [...versionFaults(root), ...changelogFaults(root), ...treeFaults(root), ...publishFaults(root)]
}

function versionFaults(root: string): string[] {
  const [toolkit, server] = PACKAGES.map((folder) => readManifest(join(root, folder))) as [Manifest, Manifest]
  const places: readonly [string, string | undefined][] = [
    ['package-lock.json', JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).version],
    [`${PACKAGES[1]}/package.json`, server.version],
    [`${PACKAGES[1]}/package.json, dependency on ${toolkit.name}`, server.dependencies?.[toolkit.name]],
  ]
  return places
    .filter(([, version]) => version !== toolkit.version)
    .map(([place, version]) => `${place}: ${version} is not the version ${toolkit.version} of package.json`)
}

function changelogFaults(root: string): string[] {
  const { version } = readManifest(root)
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m)
  const unreleased = sections.find((section) => section.startsWith('[Unreleased]'))
  const released = sections.find((section) => section.startsWith(`[${version}] - `))
  const faults: string[] = []
  if (!released || !/^\S+ - \d{4}-\d\d-\d\d\n/.test(released))
    faults.push(`CHANGELOG.md: needs a heading "## [${version}] - YYYY-MM-DD"`)
  if (unreleased && /^- /m.test(unreleased))
    faults.push(`CHANGELOG.md: "Unreleased" has entries; move them under the heading of ${version}`)
  return faults
}

function treeFaults(root: string): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const tag = `v${readManifest(root).version}`
  const faults: string[] = []
  if (git('status', '--porcelain') !== '') faults.push('git: the tree has changes that are not committed')
  if (git('tag', '--list', tag) !== '' && git('rev-parse', `${tag}^{commit}`) !== git('rev-parse', 'HEAD'))
    faults.push(`git: the tag ${tag} is at another commit; raise the version`)
  return faults
}

function publishFaults(root: string): string[] {
  return PACKAGES.flatMap((folder) => {
    const { publishConfig } = readManifest(join(root, folder))
    const file = join(folder, 'package.json')
    return Object.entries({ access: 'public', provenance: true })
      .filter(([name, value]) => publishConfig?.[name] !== value)
      .map(([name, value]) => `${file}: publishConfig.${name} must be ${value}`)
  })
}

/**
 * Returns the fields that name the origin of a package, or the reason why there are none.
 *
 * @param url the setting `RELEASE_REPOSITORY`, such as `https://github.com/owner/name`.
 */
export function originFields(url: string | undefined): { fields?: object; fault?: string } {
  if (url === undefined || url === '')
    return {
      fault:
        'RELEASE_REPOSITORY: set it to the address of the repository; it fills repository, homepage and bugs',
    }
  if (!/^https:\/\/[^/\s]+\/[^\s]*[^/\s]$/.test(url) || url.endsWith('.git'))
    return {
      fault: 'RELEASE_REPOSITORY: must be "https://…" as in a browser, without ".git" or "/" at the end',
    }
  const fields = {
    repository: { type: 'git', url: `git+${url}.git` },
    homepage: `${url}#readme`,
    bugs: { url: `${url}/issues` },
  }
  return { fields }
}
