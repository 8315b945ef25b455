import type { IncomingMessage } from 'node:http';

/** Who may ask for tokens. */
export type Client = { id: string; secret: string };

/** What the token endpoint decided: an RFC 6749 error, or null for a client that gets a token. */
export type TokenRefusal = { status: number; error: string; headers: Record<string, string> } | null;

/** Reads a token request (RFC 6749, section 4.4); the credentials come by HTTP Basic or in the form. Throws if it is too long. */
export async function checkTokenRequest(request: IncomingMessage, client: Client): Promise<TokenRefusal> {
  const form = await readForm(request);
  const presented = fromBasic(request.headers.authorization) ?? fromForm(form);
  if (presented.id !== client.id || presented.secret !== client.secret) {
    return { status: 401, error: 'invalid_client', headers: { 'www-authenticate': 'Basic' } };
  }
  const grant = form.get('grant_type');
  if (grant === 'client_credentials') return null;
  return { status: 400, error: grant === null ? 'invalid_request' : 'unsupported_grant_type', headers: {} };
}

const formLimit = 16_384;

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) {
    text += part;
    if (text.length > formLimit) throw new Error('the form is too long');
  }
  return new URLSearchParams(text);
}

function fromForm(form: URLSearchParams): Client {
  return { id: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' };
}

function fromBasic(authorization: string | undefined): Client | null {
  const encoded = /^basic (.+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const [, id = '', secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return { id: formDecode(id), secret: formDecode(secret) };
}

// RFC 6749, section 2.3.1: both parts are form-encoded before they are joined by the colon.
function formDecode(text: string): string {
  return new URLSearchParams(`text=${text.replaceAll('&', '%26')}`).get('text') ?? '';
}
