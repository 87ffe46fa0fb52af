import { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { aString, checkOptions, type OptionRules, required } from '../../../core/options/index.ts'
import type { Archive } from './archive.ts'

/** Options of {@link S3Archive}. */
export interface S3ArchiveOptions {
  /** The bucket, which must exist. */
  bucket: string
  /** The beginning of the names of all objects, such as `gateway/`. Defaults to nothing. */
  prefix?: string
  /** The URL of a service that speaks S3, such as `https://minio.internal:9000`. Defaults to Amazon's. */
  endpoint?: string
  /** Defaults to that of the machine; with an `endpoint`, to `us-east-1`. */
  region?: string
}

const RULES: OptionRules<S3ArchiveOptions> = {
  bucket: required(aString()),
  prefix: { be: 'a string', accepts: (value) => typeof value === 'string' },
  endpoint: aString(),
  region: aString(),
}

/** S3 takes no smaller ones. Two are in memory at a time, and 10,000 make an object. */
const PART_BYTES = 16 * 1024 * 1024
const CONNECT_MS = 10_000
/** For a part, on a slow link. */
const REQUEST_MS = 120_000

/**
 * Keeps what {@link SqlRetention} exports in a bucket of Amazon S3, or of a service that speaks its protocol. An object
 * appears when it is whole. The credentials are those that the AWS SDKs find, such as `AWS_ACCESS_KEY_ID` and
 * `AWS_SECRET_ACCESS_KEY`. Needs the packages `@aws-sdk/client-s3` and `@aws-sdk/lib-storage`.
 *
 * A process that is killed can leave parts of a large object: have the bucket end incomplete uploads after a day.
 *
 * @throws TypeError at construction if an option is unusable.
 * @example
 * new SqlRetention(db, { archive: new S3Archive({ bucket: 'acme-archive', prefix: 'gateway/' }) })
 */
export class S3Archive implements Archive {
  readonly #options: S3ArchiveOptions
  #loaded: Awaited<ReturnType<typeof load>> | undefined

  constructor(options: S3ArchiveOptions) {
    checkOptions('S3Archive', options, RULES)
    this.#options = options
  }

  async write(name: string, chunks: AsyncIterable<Uint8Array>, confirm: () => Promise<void>): Promise<void> {
    const { bucket, prefix = '' } = this.#options
    this.#loaded ??= await load(this.#options)
    const { client, Upload } = this.#loaded
    let failure: { readonly error: unknown } | undefined
    /** The object appears when its last chunk is taken: that ends only if it may. */
    async function* confirmed(): AsyncGenerator<Uint8Array> {
      try {
        yield* chunks
        await confirm()
      } catch (error) {
        failure = { error }
        throw error
      }
    }
    const upload = new Upload({
      client,
      params: {
        Bucket: bucket,
        Key: prefix + name,
        Body: Readable.from(confirmed()),
        ContentType: 'application/gzip',
      },
      queueSize: 1,
      partSize: PART_BYTES,
      leavePartsOnError: false,
    })
    try {
      await upload.done()
    } catch (error) {
      // The service may also fail to abort the upload.
      throw failure ? failure.error : error
    }
  }
}

async function load({ endpoint, region = endpoint && 'us-east-1' }: S3ArchiveOptions) {
  const [{ S3Client: Client }, { Upload }] = await Promise.all([
    import('@aws-sdk/client-s3'),
    import('@aws-sdk/lib-storage'),
  ])
  const client: S3Client = new Client({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Not all services know the checksums that Amazon's may have.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: REQUEST_MS,
      throwOnRequestTimeout: true,
    },
  })
  return { client, Upload }
}
