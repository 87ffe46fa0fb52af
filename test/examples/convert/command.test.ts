import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { printConverted } from '../../../examples/gateway/commands/convert.ts'
import { ConfigError } from '../../../lib/core/config/index.ts'

const BIN = fileURLToPath(new URL('../../../examples/gateway/bin.ts', import.meta.url))
const CONDITION = '--conditions=@express-model-gateway/source'
const { PATH, NODE_COMPILE_CACHE } = process.env
const folder = mkdtempSync(join(tmpdir(), 'convert-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const LITELLM = `
x-openai: &openai { api_key: os.environ/OPENAI_API_KEY }
model_list:
  - model_name: chat
    litellm_params: { <<: *openai, model: openai/gpt-4o-mini, rpm: 6, input_cost_per_token: 1.5e-07 }
  - { model_name: near, litellm_params: { model: openai/x, api_base: os.environ/BASE, input_cost_per_token: 1e-06 } }
  - { model_name: claude, litellm_params: { model: bedrock/anthropic.claude-v2, aws_region_name: us-east-1 } }
general_settings: { master_key: sk-of-the-operator }
`

describe('convert litellm', { timeout: 100_000 }, () => {
  test('prints a config that --check accepts, and apart from it what it could not carry over', async () => {
    mkdirSync(join(folder, 'proxy'))
    write('proxy/.env', 'BASE=http://models.internal/v1')
    write('proxy/litellm.yaml', LITELLM)
    const { code, stdout, stderr } = await run(['convert', 'litellm', 'proxy/litellm.yaml'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^# Converted from litellm\.yaml\n/)
    assert.match(stdout, /baseUrl: http:\/\/models\.internal\/v1\n/, 'from the .env beside the file')
    assert.match(stdout, /# model_list\[0\]\n {2}- id: openai\n/)
    assert.match(stdout, /inputPerMillion: "0\.15"/)
    assert.deepEqual(
      stderr.split('\n').map((note) => note.split(': ')[0]),
      [
        'model_list[0].litellm_params.rpm',
        'model_list[2].litellm_params.model',
        'general_settings.master_key',
        'x-openai',
        '',
      ],
    )
    write('gateway.yaml', stdout)
    const check = await run(['--check', '--config', 'gateway.yaml'], { OPENAI_API_KEY: 'sk-1' })
    assert.deepEqual([check.code, check.stdout, check.stderr], [0, 'gateway.yaml is valid\n', ''])
  })

  test('of which nothing is left prints no config', async () => {
    write('wild.yaml', 'model_list: [{ model_name: "*", litellm_params: { model: "*" } }]')
    const { code, stdout, stderr } = await run(['convert', 'litellm', 'wild.yaml'])
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^model_list\[0\]\.litellm_params\.model: .*\nwild\.yaml: no line can be made.*\n$/s)
  })

  const REFUSED: readonly [what: string, content: string, why: RegExp][] = [
    ['no YAML', 'model_list: [', /^file\.yaml is not valid YAML: look at line 1, column \d+$/],
    [
      'an alias without an anchor',
      'model_list: *nothing',
      /^file\.yaml is not valid YAML: look at line 1, column 14$/,
    ],
    ['an empty file', '', /^file\.yaml has no list model_list: it is no config of a LiteLLM proxy$/],
    ['a list', '- 1', /^file\.yaml has no list model_list/],
    ['a config of this gateway', 'models: []\nlines: []', /^file\.yaml has no list model_list/],
    ['models that are no list', 'model_list: { a: b }', /^file\.yaml has no list model_list/],
  ]
  test('a file that is not there is one line, and exit code 1', async () => {
    const { code, stdout, stderr } = await run(['convert', 'litellm', 'file.yaml'])
    assert.deepEqual([code, stdout, stderr], [1, '', 'file.yaml cannot be read (ENOENT)\n'])
  })

  for (const [what, content, why] of REFUSED)
    test(`${what} is refused in one line`, async () => {
      write('file.yaml', content)
      await assert.rejects(printConverted(join(folder, 'file.yaml'), {}), (error: Error) => {
        const [fault = '', ...more] = error instanceof ConfigError ? error.faults : [error.message]
        assert.deepEqual(more, [])
        assert.match(fault.replace(`${folder}/`, ''), why)
        assert.doesNotMatch(fault, /\n/)
        return true
      })
    })
})

function write(file: string, text: string): void {
  writeFileSync(join(folder, file), text)
}

function run(args: string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const options = { cwd: folder, env: { PATH, NODE_COMPILE_CACHE, ...env } }
    execFile(process.execPath, [CONDITION, BIN, ...args], options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })
}
