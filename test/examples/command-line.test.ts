import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OPTIONS, readCommandLine, USAGE } from '../../examples/gateway/command-line.ts'
import { readConfigFile } from '../../examples/gateway/config/config-file.ts'
import { readSettings } from '../../examples/gateway/config/environment.ts'

test('a variable that is set to nothing is as if it were not set', () => {
  const { host, port, logLevel } = readSettings({ HOST: '', PORT: '', LOG_LEVEL: '' })
  assert.deepEqual({ host, port, logLevel }, { host: '127.0.0.1', port: 8787, logLevel: 'info' })
  assert.equal(readSettings({ PORT: '0' }).port, 0)
})

describe('the command line', () => {
  const READ: readonly [args: string[], expected: object][] = [
    [[], { action: 'run', config: undefined }],
    [['--config', 'a.yaml'], { action: 'run', config: 'a.yaml' }],
    [['--use', './mine.mjs'], { action: 'run', config: undefined, use: './mine.mjs' }],
    [['--check', '--config=a.yaml'], { action: 'check', config: 'a.yaml' }],
    [['-h'], { action: 'help', config: undefined }],
    [['convert', '--help'], { action: 'help', config: undefined }],
    [['migrate'], { action: 'migrate', config: undefined, downTo: undefined }],
    [['migrate', '--down-to', 'a', '--config=b'], { action: 'migrate', config: 'b', downTo: 'a' }],
    [
      ['convert', 'litellm', 'a.yaml'],
      { action: 'convert', config: undefined, format: 'litellm', source: 'a.yaml' },
    ],
    [
      ['convert', 'litellm-prices', 'a.json'],
      { action: 'convert', config: undefined, format: 'litellm-prices', source: 'a.json' },
    ],
    [['backup', 'a'], { action: 'backup', config: undefined, file: 'a' }],
    [['restore', 'a', '--config=b'], { action: 'restore', config: 'b', file: 'a' }],
  ]
  for (const [args, expected] of READ)
    test(`is read: ${args.join(' ')}`, () => assert.deepEqual(readCommandLine(args), expected))

  const REFUSED: readonly [args: string[], why: RegExp][] = [
    [['--chekc'], /^Unknown option '--chekc';/],
    [['--config'], /'--config/],
    [['--config', '--check'], /'--config' argument is ambiguous;|'--config.*' argument/],
    [['gateway.yaml'], /'gateway\.yaml'/],
    [['covnert', 'litellm', 'a.yaml'], /'covnert'/],
    [['--check', 'gateway.yaml'], /'gateway\.yaml'/],
    [['migrate', 'a'], /migrate takes only/],
    [['migrate', '--check'], /migrate takes only/],
    [['migrate', '--use=a.mjs'], /migrate does not take --use/],
    [['--down-to', 'a'], /--down-to belongs to migrate/],
    [['convert', 'litellm', 'a.yaml', '--down-to=a'], /--down-to belongs to migrate/],
    [['backup'], /backup takes one file/],
    [['restore', 'a', 'b'], /restore takes one file/],
    [['convert'], /convert takes/],
    [['convert', 'litellm'], /convert takes/],
    [['convert', 'portkey', 'a.yaml'], /convert takes "litellm"/],
    [['convert', 'litellm', 'a.yaml', 'b.yaml'], /convert takes/],
    [['convert', 'litellm', 'a.yaml', '--check'], /convert takes/],
  ]
  for (const [args, why] of REFUSED)
    test(`is refused in one line: ${args.join(' ')}`, () => {
      assert.throws(
        () => readCommandLine(args),
        ({ message }: Error) =>
          why.test(message) && /^[^\n]*; see express-model-gateway --help$/.test(message),
      )
    })

  test('is printed by --help', () => {
    const options = Object.entries(OPTIONS).map(
      ([name, option]) => `--${name}${'short' in option ? `, -${option.short}` : ''} `,
    )
    for (const word of [...options, 'convert litellm FILE', '--down-to NAME', 'backup FILE', 'restore FILE'])
      assert.ok(USAGE.includes(word), word)
  })

  test('a config that cannot be read is reported with the setting that named it', async () => {
    for (const [option, origin] of [
      ['missing.yaml', '--config'],
      [undefined, 'GATEWAY_CONFIG'],
    ] as const) {
      const { configFile = '', configOrigin } = readSettings({ GATEWAY_CONFIG: 'missing.yaml' }, option)
      await assert.rejects(readConfigFile(configFile, configOrigin), {
        message: `${origin}: missing.yaml cannot be read (ENOENT)`,
      })
    }
  })
})
