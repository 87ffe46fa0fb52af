import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { faultsOf, originFields } from './release-faults.ts'

const publishConfig = { access: 'public', provenance: true }
const TOOLKIT = { name: 'toolkit', version: '1.2.0', publishConfig }
const SERVER = { name: 'server', version: '1.2.0', dependencies: { toolkit: '1.2.0' }, publishConfig }
const CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-22\n\n- A thing.\n'

/** The files of a repository that can be released. */
const RELEASABLE: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify(TOOLKIT),
  'package-lock.json': JSON.stringify({ version: '1.2.0' }),
  'CHANGELOG.md': CHANGELOG,
  'examples/deploy/package/package.json': JSON.stringify(SERVER),
}

const SERVER_FILE = 'examples/deploy/package/package.json'
const CASES: readonly [what: string, changed: Record<string, string>, faults: string[]][] = [
  ['nothing', {}, []],
  [
    'another version of the server, and of the toolkit that it brings',
    { [SERVER_FILE]: JSON.stringify({ ...SERVER, version: '1.1.0', dependencies: { toolkit: '^1.2.0' } }) },
    [
      `${SERVER_FILE}: 1.1.0 is not the version 1.2.0 of package.json`,
      `${SERVER_FILE}, dependency on toolkit: ^1.2.0 is not the version 1.2.0 of package.json`,
    ],
  ],
  [
    'another version in the lock file',
    { 'package-lock.json': JSON.stringify({ version: '1.1.0' }) },
    ['package-lock.json: 1.1.0 is not the version 1.2.0 of package.json'],
  ],
  [
    'a changelog that knows the version without its day',
    { 'CHANGELOG.md': CHANGELOG.replace(' - 2026-11-22', '') },
    ['CHANGELOG.md: needs a heading "## [1.2.0] - YYYY-MM-DD"'],
  ],
  [
    'a change that is not under the version',
    { 'CHANGELOG.md': CHANGELOG.replace('[Unreleased]\n', '[Unreleased]\n\n- Another thing.\n') },
    ['CHANGELOG.md: "Unreleased" has entries; move them under the heading of 1.2.0'],
  ],
  [
    'a package that would be published without provenance',
    { 'package.json': JSON.stringify({ ...TOOLKIT, publishConfig: { access: 'public' } }) },
    ['package.json: publishConfig.provenance must be true'],
  ],
]

for (const [what, changed, faults] of CASES)
  test(`a reason against a release: ${what}`, (t) => {
    assert.deepEqual(faultsOf(repository(t, { ...RELEASABLE, ...changed })), faults)
  })

test('a reason against a release: a change that is not committed', (t) => {
  const root = repository(t, RELEASABLE)
  writeFileSync(join(root, 'new.txt'), '')
  assert.deepEqual(faultsOf(root), ['git: the tree has changes that are not committed'])
})

test('a reason against a release: a version whose tag is at an earlier commit; one at this commit is none', (t) => {
  const root = repository(t, RELEASABLE)
  git(root, 'tag', 'v1.2.0')
  assert.deepEqual(faultsOf(root), [])
  git(root, 'commit', '--quiet', '--allow-empty', '--message=later')
  assert.deepEqual(faultsOf(root), ['git: the tag v1.2.0 is at another commit; raise the version'])
})

test('one setting fills the fields that say where a package comes from', () => {
  assert.deepEqual(originFields('https://forge.example/owner/name'), {
    fields: {
      repository: { type: 'git', url: 'git+https://forge.example/owner/name.git' },
      homepage: 'https://forge.example/owner/name#readme',
      bugs: { url: 'https://forge.example/owner/name/issues' },
    },
  })
})

for (const url of [
  undefined,
  '',
  'owner/name',
  'http://forge.example/a/b',
  'https://forge.example/a/b.git',
  'https://forge.example/a/',
])
  test(`the setting ${url} fills nothing, which is said in one line`, () => {
    const { fields, fault } = originFields(url)
    assert.equal(fields, undefined)
    assert.match(`${fault}`, /^RELEASE_REPOSITORY: [^\n]+$/)
  })

function repository(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'releasable-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  git(root, 'init', '--quiet')
  git(root, 'add', '.')
  git(root, 'commit', '--quiet', '--message=first')
  return root
}

function git(cwd: string, ...args: string[]): void {
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], { cwd })
}
