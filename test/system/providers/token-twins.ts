import { createPublicKey, verify } from 'node:crypto'
import { TWIN_KEY } from './openai-twins.ts'
import type { Twin } from './twin-server.ts'

/** Microsoft Entra's token endpoint: the grant of a client. */
export const entraTwin: Twin = ({ path, raw }) => {
  const form = new URLSearchParams(raw.toString())
  if (path !== '/YOUR-TENANT/oauth2/v2.0/token') return { status: 404, body: {} }
  const isClient =
    form.get('grant_type') === 'client_credentials' &&
    form.get('client_id') === 'twin-client' &&
    form.get('client_secret') === TWIN_KEY &&
    form.get('scope') === 'https://cognitiveservices.azure.com/.default'
  if (!isClient)
    return { status: 401, body: { error: 'invalid_client', error_description: `AADSTS7000215: ${TWIN_KEY}` } }
  return { body: { token_type: 'Bearer', expires_in: 3599, access_token: 'entra-token' } }
}

/** Google's token endpoint: a JWT that a service account has signed. */
export function googleTwin(publicKey: string): Twin {
  return ({ path, raw }) => {
    const [head = '', claims = '', signature = ''] = (
      new URLSearchParams(raw.toString()).get('assertion') ?? ''
    ).split('.')
    const key = createPublicKey(publicKey)
    const good = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      key,
      Buffer.from(signature, 'base64url'),
    )
    const { iss, scope } = JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}')
    if (
      path !== '/token' ||
      !good ||
      iss !== 'twin@twin.iam.gserviceaccount.com' ||
      !/cloud-platform/.test(scope)
    )
      return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } }
    return { body: { access_token: 'google-token', expires_in: 3599, token_type: 'Bearer' } }
  }
}
