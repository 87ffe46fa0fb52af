import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { ROOT } from '../package/packages.ts'

export const CHART = join(ROOT, 'examples/deploy/chart')

/** Where Debian has the Go packages that Helm is made of: golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev. */
const GO_PACKAGES = '/usr/share/gocode'

/** Why no chart can be rendered on this machine, or `false`. */
export const WITHOUT_GO: string | false =
  spawnSync('go', ['version']).status === 0 && existsSync(GO_PACKAGES)
    ? false
    : 'Go, or the Go packages that Helm is made of, are not on this machine'

/** A manifest of Kubernetes, as a client would send it. */
// biome-ignore lint/suspicious/noExplicitAny: the tests read members of many kinds
export type Manifest = any

/** The least that an installation sets. */
export const LEAST = {
  image: { repository: 'registry.example/gateway' },
  existingSecret: 'gateway-secrets',
  config: '# the config\naccounts: []\n',
}

/** Renders the chart of examples/deploy as Helm does. */
export class ChartRenderer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'chart-'))

  constructor() {
    const source = join(import.meta.dirname, 'render-chart.go')
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PACKAGES }
    execFileSync('go', ['build', '-o', join(this.#folder, 'render'), source], { env })
  }

  /**
   * Returns the manifests of a release named `shop`, by kind.
   *
   * @throws with the message for which the chart cannot be installed.
   */
  render(values: object): Readonly<Record<string, Manifest>> {
    const file = join(this.#folder, 'values.yaml')
    writeFileSync(file, stringify(values))
    const { status, stdout, stderr } = spawnSync(
      join(this.#folder, 'render'),
      [CHART, 'shop', 'prod', file],
      { encoding: 'utf8' },
    )
    if (status !== 0) throw new Error(stderr)
    const documents = parseAllDocuments(withoutNotes(stdout))
    for (const { errors } of documents) if (errors[0]) throw errors[0]
    const manifests = documents.map((document) => document.toJS() as Manifest).filter((each) => each?.kind)
    return Object.fromEntries(manifests.map((manifest) => [manifest.kind, manifest]))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** NOTES.txt is printed to a person. */
function withoutNotes(rendered: string): string {
  return rendered.replace(/^---\n# Source: NOTES\.txt\n.*?^---$/ms, '---')
}
