import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { it } from 'node:test'
import { AwsSigner } from '../../../lib/routing/credentials/aws-signer.ts'

const SECRET = 'shared'
const REGION = 'eu-west-1'
const SERVICE = 'bedrock'

const hash = (text: string) => createHash('sha256').update(text).digest('hex')
const keyed = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** The signature that AWS expects of a GET, as its Signature Version 4 describes it. */
function expectedSignature(
  path: string,
  sortedQuery: string,
  headers: Readonly<Record<string, string>>,
): string {
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join('')
  const request = ['GET', path, sortedQuery, lines, names.join(';'), hash('')].join('\n')
  const at = headers['x-amz-date'] ?? ''
  const scope = [at.slice(0, 8), REGION, SERVICE, 'aws4_request']
  const key = scope.reduce<string | Buffer>(keyed, `AWS4${SECRET}`)
  return keyed(key, ['AWS4-HMAC-SHA256', at, scope.join('/'), hash(request)].join('\n')).toString('hex')
}

for (const [what, query, sorted] of [
  ['a query', '?b=2&a=1', 'a=1&b=2'],
  [
    'a query with a repeated name',
    '?include[]=b&limit=2&include[]=a',
    'include%5B%5D=a&include%5B%5D=b&limit=2',
  ],
  ['no query', '', ''],
] as const)
  it(`a request with ${what} has the signature that AWS computes`, async (t) => {
    process.env.AWS_ACCESS_KEY_ID = 'AKIA0000000000000000'
    process.env.AWS_SECRET_ACCESS_KEY = SECRET
    t.after(() => {
      delete process.env.AWS_ACCESS_KEY_ID
      delete process.env.AWS_SECRET_ACCESS_KEY
    })
    const signer = new AwsSigner({ kind: 'aws', region: REGION, service: SERVICE })
    const url = `https://bedrock.example/v1/files${query}`
    const { authorization = '', ...signed } = await signer.sign({
      method: 'GET',
      url,
      headers: {},
      body: undefined,
    })
    const headers = { host: 'bedrock.example', ...signed }
    assert.ok(
      authorization.endsWith(`Signature=${expectedSignature('/v1/files', sorted, headers)}`),
      authorization,
    )
  })
