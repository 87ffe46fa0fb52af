import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { manifestOf, PATH, ROOT, run } from './packages.ts'

const NAMES = ['express-model-gateway', 'express-model-gateway-server']

test('a dry run of a release: the tarballs pass, say where they come from, and the tree stays as it is', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'release-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const root = join(folder, 'clone')
  const git = (cwd: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd,
      encoding: 'utf8',
    })
  for (const file of git(ROOT, 'ls-files', '--cached', '--others', '--exclude-standard').trim().split('\n'))
    if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(root, file), { recursive: true })
  cpSync(join(ROOT, 'dist'), join(root, 'dist'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  const { version } = manifestOf('toolkit')
  writeFileSync(
    join(root, 'CHANGELOG.md'),
    `# Changelog\n\n## [Unreleased]\n\n## [${version}] - 2026-11-22\n`,
  )
  writeFileSync(join(root, '.gitignore'), 'node_modules\ndist/\n*.tgz\n')
  git(root, 'init', '--quiet')
  git(root, 'add', '.')
  git(root, 'commit', '--quiet', '--message=all')

  const said = run(root, 'npm', ['run', '--silent', 'release', '--', '--dry-run'], {
    PATH,
    HOME: process.env.HOME,
    TMPDIR: folder,
    RELEASE_REPOSITORY: 'https://forge.example/owner/name',
    // The caller has just built.
    npm_config_ignore_scripts: 'true',
  })
  const [first, ...notPublished] = said.trim().split('\n')
  assert.equal(first, `${version} can be released`)
  const tarballs = notPublished.map((line) => /^not published: (.+)$/.exec(line)?.[1] ?? assert.fail(line))
  assert.deepEqual(
    tarballs.map((path) => path.split('/').at(-1)),
    NAMES.map((name) => `${name}-${version}.tgz`),
  )
  for (const tarball of tarballs) {
    const text = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' })
    const { repository, homepage, bugs } = JSON.parse(text)
    assert.equal(repository.url, 'git+https://forge.example/owner/name.git')
    assert.equal(homepage, 'https://forge.example/owner/name#readme')
    assert.equal(bugs.url, 'https://forge.example/owner/name/issues')
  }
  assert.equal(
    readFileSync(join(root, 'package.json'), 'utf8'),
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
})
