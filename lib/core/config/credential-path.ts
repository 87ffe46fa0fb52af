/** Segments of a path, as {@link plain} writes them, whose answer is a credential of the provider, or manages its keys. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'accesstoken',
  'accesstokens',
  'adminapikeys',
  'apikey',
  'apikeys',
  'authkeys',
  'authtoken',
  'authtokens',
  'clientsecret',
  'clientsecrets',
  'clienttoken',
  'clienttokens',
  'getsignedurl',
  'grant',
  'keys',
  'oauth',
  'organization',
  'organizations',
  'presignedurl',
  'presignedurls',
  'serviceaccounts',
  'sessiontoken',
  'sessiontokens',
  'signedurl',
  'singleusetoken',
  'singleusetokens',
  'temporarytoken',
  'temporarytokens',
  'token',
  'tokens',
  'uploadurl',
  'uploadurls',
])
/** Below these, a new session comes with a key for it. */
const SESSION_HOLDER = /^(?:realtime|chatkit)/
const SESSIONS = /^(?:\w*sessions?)$/

/**
 * Whether upstreams answer a path with a credential of theirs, such as the ephemeral key of a realtime session: with it, a
 * caller reaches the provider past the gateway. Other spellings of a path count as it.
 *
 * @param path a path, without its query.
 */
export function returnsCredentials(path: string): boolean {
  const segments = fullyDecoded(path)
    .split(/[/\\:]/)
    .map(plain)
    .filter((segment) => segment !== '')
  return segments.some(
    (segment, i) =>
      CREDENTIALS.has(segment) ||
      segment.startsWith('ephemeral') ||
      (SESSIONS.test(segment) && segments.slice(0, i).some((holder) => SESSION_HOLDER.test(holder))),
  )
}

/** A path that is encoded more often is decoded no further: no server does so. */
const MAX_ENCODINGS = 5

function fullyDecoded(path: string): string {
  let decoded = path
  for (let i = 0; i < MAX_ENCODINGS; i++) {
    try {
      const next = decodeURIComponent(decoded)
      if (next === decoded) break
      decoded = next
    } catch {
      break
    }
  }
  return decoded
}

/** Writes a segment without parameters, format, case, separators and what a server may drop. */
function plain(segment: string): string {
  return segment
    .replace(/;.*/s, '')
    .replace(/\.json$/i, '')
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
}
