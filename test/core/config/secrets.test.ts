import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { ConfigError, loadResolvedConfig } from '../../../lib/core/config/index.ts'
import { readSecretFile } from '../../../lib/core/config/secrets.ts'
import { loadConfig } from '../../support/any-config.ts'
import { configWith, KEY, LINE } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function faultsOf(source: object): readonly string[] {
  try {
    loadConfig(source, {})
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

describe('a secret in a file', () => {
  const at = (name: string) => `file:${file(name, `secret-of-${name}-0123\n`)}`
  const source = configWith({
    keys: [{ ...KEY, secret: at('key') }],
    lines: [{ ...LINE, apiKey: at('line'), headers: { 'X-Key': at('header') }, query: { key: at('query') } }],
    urlSigningSecret: at('url'),
  })

  it('is read at every place of a secret, without the line break at its end', () => {
    const { catalog, keys, urlSigningSecret } = loadConfig(source)
    const { apiKey, headers, query } = catalog.lines[0] ?? {}
    assert.deepEqual(
      [keys[0]?.secret, apiKey, headers?.['x-key'], query, urlSigningSecret],
      [
        'secret-of-key-0123',
        'secret-of-line-0123',
        'secret-of-header-0123',
        'key=secret-of-query-0123',
        'secret-of-url-0123',
      ],
    )
  })

  it('is among the files that the config names', () => {
    assert.equal(loadConfig(source).secretFiles.size, 5)
    assert.deepEqual([...loadConfig(configWith()).secretFiles], [])
  })

  it('is in the resolved source, which loads as the same config without the files', () => {
    const source = configWith({
      lines: [
        {
          ...LINE,
          apiKey: at('line'),
          tls: { ca: file('ca', '# ours\n-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----') },
        },
      ],
      urlSigningSecret: [at('url'), 'env:OLD'],
    })
    const first = loadConfig(source, { OLD: 'the-secret-before' })
    file('line', 'another')
    rmSync(join(folder, 'ca'))
    const again = loadResolvedConfig(first.resolved)
    assert.deepEqual(again.resolved, first.resolved)
    assert.deepEqual(again.catalog.lines, first.catalog.lines)
    assert.deepEqual(again.urlSigningSecret, ['secret-of-url-0123', 'the-secret-before'])
    assert.equal(again.secretFiles.size, 0)
  })

  it('or in a variable is resolved once, even if its value looks like a reference', () => {
    const like = ['env:NOT_SET', 'env:OTHER', `file:${file('other', 'other')}`, 'file:/nowhere'] as const
    for (const A_SECRET of like) {
      const env = { A_SECRET, OTHER: 'other' }
      for (const secret of ['env:A_SECRET', `file:${file('like', A_SECRET)}`]) {
        const headers = { 'x-key': secret }
        const source = configWith({
          keys: [{ ...KEY, secret }],
          lines: [{ ...LINE, apiKey: secret, headers }],
        })
        const first = loadConfig(source, env)
        const again = loadResolvedConfig(first.resolved, env)
        assert.equal(again.keys[0]?.secret, A_SECRET)
        assert.deepEqual(again.resolved, first.resolved)
        assert.deepEqual(again.catalog.lines, first.catalog.lines)
      }
    }
  })

  it('is not shown in a fault if it was written in place of its path', () => {
    const short = 'MIIEvQIBADANBgkq'
    const headless = [short, short.repeat(50), `${short}\n${short}`, `${short}\r\n-----END PRIVATE KEY-----`]
    const cert = '-----BEGIN CERTIFICATE-----'
    const sources = headless.flatMap((text) => [
      { ...LINE, tls: { key: text, cert } },
      ...(text === short
        ? []
        : [
            { ...LINE, tls: { key: `file:${text}`, cert } },
            { ...LINE, tls: { ca: text } },
            { ...LINE, apiKey: `file:${text}` },
            { ...LINE, headers: { 'x-key': `file:${text}` } },
          ]),
    ])
    for (const line of sources) {
      const faults = faultsOf(configWith({ lines: [line] })).join()
      assert.match(faults, /must be the path of a file that can be read/)
      assert.doesNotMatch(faults, /MII/)
    }
    const named = { ...LINE, tls: { key: 'file:/nowhere/key.pem', cert } }
    assert.match(
      faultsOf(configWith({ lines: [named] })).join(),
      /the file \/nowhere\/key\.pem cannot be read/,
    )
  })

  it('is read from a file of up to 1 MiB', () => {
    const path = file('largest', `sk-1${' '.repeat(1024 * 1024 - 4)}`)
    assert.deepEqual(readSecretFile(path), { text: 'sk-1' })
  })

  it('that cannot be read is reported without its content', () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const rows = [
      join(folder, 'nowhere'),
      folder,
      pipe,
      file('empty', ' \n'),
      file('large', 'x'.repeat(1024 * 1024 + 1)),
      file('broken', 'sk-1\nsk-2'),
    ]
    for (const path of rows) {
      const faults = faultsOf(configWith({ lines: [{ ...LINE, apiKey: `file:${path}` }] }))
      assert.equal(faults.length, 1, faults.join('\n'))
      assert.ok(faults[0]?.startsWith('lines[0].apiKey: '), faults[0])
      assert.doesNotMatch(faults[0] ?? '', /sk-1|xxx/)
    }
  })
})
