import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { readSecretFile, withSecrets } from '../../../lib/core/config/secrets.ts'

type Json = Record<string, unknown>

const folder = mkdtempSync(join(tmpdir(), 'secret-places-'))
after(() => rmSync(folder, { recursive: true }))
const PATH = join(folder, 'secret')
writeFileSync(PATH, ' of a file \n')

const line = (member: string, value: unknown) => ({ lines: [{ id: 'a' }, { [member]: value }] })
/** Where a secret may stand: the path, and a source that has it there. */
const PLACES: Record<string, (secret: unknown) => Json> = {
  urlSigningSecret: (secret) => ({ urlSigningSecret: secret }),
  'urlSigningSecret[1]': (secret) => ({ urlSigningSecret: ['plain', secret] }),
  'keys[1].secret': (secret) => ({ keys: [{}, { secret }] }),
  'lines[1].apiKey': (secret) => line('apiKey', secret),
  'lines[1].apiKey.oauth.clientId': (clientId) => line('apiKey', { oauth: { clientId } }),
  'lines[1].apiKey.oauth.clientSecret': (clientSecret) => line('apiKey', { oauth: { clientSecret } }),
  'lines[1].apiKey.google.credentials': (credentials) => line('apiKey', { google: { credentials } }),
  'lines[1].headers.x-a': (secret) => line('headers', { 'x-a': secret, 'x-b': 'plain' }),
  'lines[1].query.key': (key) => line('query', { key, v: '1' }),
  'lines[1].proxy': (secret) => line('proxy', secret),
  'lines[1].tls.ca': (ca) => line('tls', { ca }),
  'lines[1].tls.cert': (cert) => line('tls', { cert }),
  'lines[1].tls.key': (key) => line('tls', { key }),
}
/** Where none is looked for. */
const PLAIN: ((text: unknown) => Json)[] = [
  (text) => ({ region: text }),
  (text) => ({ accounts: [{ name: text, secret: text }] }),
  (text) => ({ keys: [{ name: text }], secret: text }),
  (text) => ({ keys: { secret: text } }),
  (text) => line('baseUrl', text),
  (text) => line('body', { a: text }),
  (text) => line('apiKey', { oauth: { tokenUrl: text, scope: text }, aws: { region: text } }),
  (text) => line('headers', [text]),
  (text) => line('tls', { other: text }),
  (text) => line('tls', text),
]
const ENV = { NAME: 'of a variable' }

describe('a secret of the config', () => {
  for (const [place, build] of Object.entries(PLACES))
    it(`is replaced at its place, and nothing else is changed: ${place}`, () => {
      for (const [named, secret] of [
        ['env:NAME', 'of a variable'],
        [`file:${PATH}`, 'of a file'],
      ] as const) {
        const source = build(named)
        const { value, faults, files } = withSecrets(source, ENV)
        assert.deepEqual([value, faults], [build(secret), []])
        assert.deepEqual([...files], named === 'env:NAME' ? [] : [PATH])
        assert.deepEqual(source, build(named))
      }
    })

  for (const [place, build] of Object.entries(PLACES))
    it(`is reported with its place if it is missing: ${place}`, () => {
      const fault = (named: string) => withSecrets(build(named), ENV).faults
      assert.deepEqual(fault('env:OTHER'), [`${place}: the environment variable OTHER is not set`])
      const nowhere = join(folder, 'nowhere')
      assert.deepEqual(fault(`file:${nowhere}`), [`${place}: the file ${nowhere} cannot be read (ENOENT)`])
      assert.deepEqual(withSecrets(build('env:OTHER'), ENV).value, build(`unset:${place}`))
    })

  it('stays as it is if it is no reference, or stands in a member without secrets', () => {
    for (const text of ['plain', 'ENV:NAME', 'environment', ' env:NAME', 7, null, ['a'], { a: 'env:NAME' }])
      for (const build of Object.values(PLACES).slice(0, 9)) {
        if (Array.isArray(text) || typeof text === 'object') continue
        assert.deepEqual(withSecrets(build(text), ENV), { value: build(text), faults: [], files: new Set() })
      }
    for (const build of PLAIN)
      for (const text of ['env:NAME', `file:${PATH}`])
        assert.deepEqual(withSecrets(build(text), ENV).value, build(text))
    for (const source of [null, 'env:NAME', ['env:NAME'], 7])
      assert.deepEqual(withSecrets(source, ENV).value, source)
  })

  it('can be a certificate in the config, or the path of its file', () => {
    const pem = '# ours\n-----BEGIN CERTIFICATE-----\nMII'
    assert.deepEqual(withSecrets(line('tls', { ca: pem }), ENV), {
      value: line('tls', { ca: pem }),
      faults: [],
      files: new Set(),
    })
    for (const member of ['ca', 'cert', 'key'])
      assert.deepEqual(
        withSecrets(line('tls', { [member]: PATH }), ENV).value,
        line('tls', { [member]: 'of a file' }),
      )
  })

  it('is reported without a path that may be the secret itself', () => {
    const hidden = 'must be the path of a file that can be read'
    const told = (member: string, text: string) => withSecrets(line('tls', { [member]: text }), ENV).faults[0]
    const long = (length: number) => join(folder, 'x'.repeat(length - folder.length - 1))
    assert.ok(told('ca', long(200))?.includes(long(200)))
    assert.equal(told('ca', long(201)), `lines[1].tls.ca: ${hidden}`)
    for (const text of ['a\nb', 'a\rb']) assert.equal(told('cert', text), `lines[1].tls.cert: ${hidden}`)
    assert.equal(told('key', '/nowhere'), `lines[1].tls.key: ${hidden}`)
    assert.match(told('key', 'file:/nowhere') ?? '', /\/nowhere cannot be read/)
  })
})

describe('the file of a secret', () => {
  it('is a regular file of up to 1 MiB that is not empty', () => {
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    assert.deepEqual(readSecretFile(PATH), { text: 'of a file' })
    assert.deepEqual(readSecretFile(file('full', `a${' '.repeat(2 ** 20 - 1)}`)), { text: 'a' })
    const large = file('large', `a${' '.repeat(2 ** 20)}`)
    assert.deepEqual(readSecretFile(large), { fault: `${large} is no file of at most 1 MiB` })
    assert.deepEqual(readSecretFile(folder), { fault: `${folder} is no file of at most 1 MiB` })
    const empty = file('empty', ' \n')
    assert.deepEqual(readSecretFile(empty), { fault: `the file ${empty} is empty` })
  })
})
