import assert from 'node:assert/strict'
import { it } from 'node:test'
import { returnsCredentials } from '../../../lib/core/config/credential-path.ts'

it('A path whose answer is a credential of the provider is known in all spellings.', () => {
  for (const path of [
    ...['/realtime/client_secrets', '/realtime/sessions', '/realtime/transcription_sessions'],
    ...['/Realtime/Client_Secrets/', '//realtime//client_secrets', '/realtime/client%5Fsecrets'],
    ...['/realtime/client%255Fsecrets', '/realtime/client-secrets', '/realtime/clientSecrets;a=b'],
    ...[
      '/realtime/client_secrets%20',
      '/realtime/client_secrets%00',
      '/realtime%2Fsessions',
      '/realtime\\sessions',
    ],
    ...['/realtime/translations/client_secrets', '/chatkit/sessions', '/chatkit/sessions/cksess_1/cancel'],
    ...[
      '/openai/realtimeapi/sessions',
      '/organization/usage',
      '/organizations/api_keys',
      '/organization/admin_api_keys',
    ],
    ...[
      '/auth_tokens',
      '/auth_tokens:create',
      '/auth/grant',
      '/single-use-token/realtime',
      '/ephemeral_token',
    ],
    ...[
      '/ephemeral-keys/new',
      '/projects/p/keys',
      '/convai/conversation/get_signed_url',
      '/\uff4beys',
      '/token',
    ],
  ])
    assert.equal(returnsCredentials(path), true, path)
  for (const path of [
    ...['/files', '/realtime', '/realtime/calls', '/sessions', '/sessions/s_1', '/audio/speech', '/tokenize'],
    ...['/chat/count_tokens', '/keysets', '/secretary', '/batches/organize', '/%zz'],
  ])
    assert.equal(returnsCredentials(path), false, path)
})
